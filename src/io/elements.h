// Conversion of elements on the host, in and out of a session: between orders and between floating-point types.
#pragma once

#include <cstddef>
#include <span>

#include "ir/type.h"

namespace snug::io {

// Between a plain dense layout (not opaque) and logical, row-major order. Both spans have the type's bytes.
void to_logical_order(const Type& type, std::span<const std::byte> stored, std::span<std::byte> logical);
void from_logical_order(const Type& type, std::span<const std::byte> logical, std::span<std::byte> stored);

// Whether none of them is infinite or not a number; the type is floating.
bool all_finite(DType dtype, std::span<const std::byte> elements);
// Converts as many elements as both spans hold, rounding once, to nearest even; both types are floating.
void convert_elements(DType from, std::span<const std::byte> source, DType to, std::span<std::byte> target);

}  // namespace snug::io
