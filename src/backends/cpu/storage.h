// What the CPU's kernels store: floats, or 16-bit numbers that are computed with as floats.
#pragma once

#include <cstdint>
#include <type_traits>

#include "backends/operands.h"
#include "base/error.h"
#include "base/half.h"
#include "ir/kernel.h"

namespace snug::backends::cpu {

struct Bfloat16 {
  std::uint16_t bits;
};
struct Half {
  std::uint16_t bits;
};

}  // namespace snug::backends::cpu

namespace snug::backends {

template <>
inline constexpr DType kStoredAs<cpu::Bfloat16> = DType::bf16;
template <>
inline constexpr DType kStoredAs<cpu::Half> = DType::f16;

}  // namespace snug::backends

namespace snug::backends::cpu {

inline float to_float(float value) { return value; }
inline float to_float(Bfloat16 value) { return float_from_bfloat(value.bits); }
inline float to_float(Half value) { return float_from_half(value.bits); }

// Rounded to nearest, once: doubles come from tables and sums.
template <typename T>
T stored(double value) {
  if constexpr (std::is_same_v<T, Bfloat16>) return {bfloat_from_double(value)};
  if constexpr (std::is_same_v<T, Half>) return {half_from_double(value)};
  if constexpr (std::is_same_v<T, float>) return static_cast<float>(value);
}

// The same for a float, faster than through a double.
template <typename T>
T stored_float(float value) {
  if constexpr (std::is_same_v<T, Bfloat16>) return {bfloat_from_float(value)};
  if constexpr (std::is_same_v<T, Half>) return {half_from_float(value)};
  if constexpr (std::is_same_v<T, float>) return value;
}

// By the name that shared code uses (backends/sparse_store.h).
inline double real_of(Bfloat16 value) { return to_float(value); }
inline double real_of(Half value) { return to_float(value); }
inline void put_real(Bfloat16& place, double value) { place = stored<Bfloat16>(value); }
inline void put_real(Half& place, double value) { place = stored<Half>(value); }

// What values are stored as; computed with in f32, except for products that the processor has instructions for.
using Reals = RealTypes<float, Bfloat16, Half>;

inline bool is_stored(DType dtype) { return Reals::contains(dtype); }
inline bool is_16_bits(const Type& type) { return type.dtype == DType::bf16 || type.dtype == DType::f16; }

// Stored elements, padding of the layout included.
inline std::int64_t stored_elements(const Type& type) { return type.bytes().count() * 8 / bits_per_element(type.dtype); }

// Returns body(T{}) for the T of the dtype.
template <typename Body>
auto with_storage(DType dtype, const Body& body) {
  SNUG_CHECK(is_stored(dtype), "no kernel here stores {}", name_of(dtype));
  return Reals::with(dtype, body);
}

template <typename T>
T* elements(const Operand& operand) {
  return reinterpret_cast<T*>(operand.data);
}
inline float* floats(const Operand& operand) { return elements<float>(operand); }

}  // namespace snug::backends::cpu
