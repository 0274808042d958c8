// Lists of ops and kernels, made from lines such as SNUG_FAMILY(relu, relu_grad): one line per source file, which is included
// twice, once to declare what it names and once to list it. A list, not a registry by static initialization: linkers drop those,
// and a list can be read.
#pragma once

#include <array>
#include <cstddef>

namespace snug {

template <typename T>
struct FamilyMember {
  constexpr FamilyMember(const T& member) : address(&member) {}  // NOLINT(google-explicit-constructor): written as a plain name
  const T* address;
};

template <typename T, std::size_t Count>
constexpr std::array<const T*, Count> addresses_of(const FamilyMember<T> (&members)[Count]) {
  std::array<const T*, Count> addresses{};
  for (std::size_t i = 0; i < Count; ++i) addresses[i] = members[i].address;
  return addresses;
}

}  // namespace snug
