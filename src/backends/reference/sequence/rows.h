// What the kernels of sequences share: rows of [R,D], whose elements lie side by side in both layouts.
#pragma once

#include <cstdint>

#include "backends/reference/call.h"

namespace snug::backends::reference {

// Sums over a row are made for this many columns at a time, on the stack.
inline constexpr std::int64_t kColumnBlock = 128;

template <typename T>
const T* row_of(const Call& call, std::size_t input, std::int64_t row) {
  return &call.input<T>(input)(row);
}

template <typename T>
double dot(const T* a, const T* b, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

// A number that is needed until a stretch of a result is written: held in that stretch, as its value in T and, where there is
// room for a second element, what this rounds off.
template <typename T>
void hold(T* stretch, std::int64_t room, double number) {
  stretch[0] = static_cast<T>(number);
  if (room > 1) stretch[1] = static_cast<T>(number - double{stretch[0]});
}
template <typename T>
double held(const T* stretch, std::int64_t room) {
  return double{stretch[0]} + (room > 1 ? double{stretch[1]} : 0.0);
}

}  // namespace snug::backends::reference
