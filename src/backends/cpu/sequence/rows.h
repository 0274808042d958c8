// What the kernels here ask of their operands: rows of one stored type, with statistics and parameters of normalization in f32.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>

#include "backends/cpu/simd/loops.h"
#include "backends/cpu/storage.h"
#include "ir/kernel.h"

namespace snug::backends::cpu {

// Why the inputs of these numbers are not row-major and of the first one's type, or those of `single` not f32; nothing when they
// are. All outputs with real numbers follow from these.
inline std::optional<std::string> objection_to_rows(const KernelQuery& query, std::initializer_list<std::size_t> real,
                                                    std::initializer_list<std::size_t> single = {}) {
  const DType dtype = query.inputs[*real.begin()].dtype;
  for (const std::size_t i : real) {
    const Type& type = query.inputs[i];
    if (!is_stored(type.dtype)) return to_string(type) + " is not f32, bf16 or f16";
    if (type.dtype != dtype) return to_string(type) + " has another element type than " + to_string(query.inputs[*real.begin()]);
    if (type.layout.kind != Layout::Kind::row_major) return to_string(type) + " is not row-major";
  }
  for (const std::size_t i : single) {
    if (query.inputs[i].dtype != DType::f32) return to_string(query.inputs[i]) + " is not f32";
  }
  return std::nullopt;
}

// The operand that a kernel adds its result to; null where it adds to none.
template <typename T>
const T* addend_of(const KernelArguments& arguments) {
  return accumulates(arguments.attributes) ? elements<T>(arguments.inputs.back()) : nullptr;
}

// So many floats of each thread, to a cache line.
inline std::int64_t stride_of_floats(std::int64_t floats) { return (floats + 15) / 16 * 16; }
inline Bytes size_of_floats(std::int64_t floats, int threads) { return Bytes(4 * stride_of_floats(floats) * threads); }

// A row of floats as a row of a gradient, rounded before it is added to an accumulator's.
template <typename T>
void put_row(const float* fresh, const T* addend, T* to, std::int64_t columns) {
  if (addend == nullptr) {
    simd::element_loops<T>().narrow(fresh, to, columns);
  } else {
    simd::element_loops<T>().add_floats(addend, fresh, to, columns);
  }
}

}  // namespace snug::backends::cpu
