// What the kernels of sequences share: rows of [R,D], whose elements lie side by side in both layouts.
#pragma once

#include <cstdint>
#include <cstring>

#include "backends/reference/call.h"

namespace snug::backends::reference {

// Sums over a row are made for this many columns at a time, on the stack.
inline constexpr std::int64_t kColumnBlock = 128;

template <typename T>
double dot(const T* a, const T* b, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

// A number that is needed until a stretch of a result is written is held in that stretch; rounded to T where this is a single
// element with no room for it.
template <typename T>
constexpr bool has_room(std::int64_t elements) {
  return elements * static_cast<std::int64_t>(sizeof(T)) >= static_cast<std::int64_t>(sizeof(double));
}
template <typename T>
void hold(T* stretch, std::int64_t elements, double number) {
  if (has_room<T>(elements))
    std::memcpy(stretch, &number, sizeof number);
  else
    *stretch = static_cast<T>(number);
}
template <typename T>
double held(const T* stretch, std::int64_t elements) {
  double number = *stretch;
  if (has_room<T>(elements)) std::memcpy(&number, stretch, sizeof number);
  return number;
}

}  // namespace snug::backends::reference
