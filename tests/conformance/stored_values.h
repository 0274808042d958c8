// Values of every dtype as doubles in logical order, to and from the bytes that a state holds.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/half.h"
#include "ir/type.h"

namespace snug::conformance {

// By arithmetic of its own: channels-last of rank 4 is N,H,W,C, everything else lies in logical order.
inline std::int64_t position_of(const Type& type, std::int64_t logical) {
  if (type.layout.kind != Layout::Kind::channels_last || type.shape.rank() != 4) return logical;
  const std::int64_t channels = type.shape[1], height = type.shape[2], width = type.shape[3];
  const std::int64_t w = logical % width, h = logical / width % height, c = logical / width / height % channels;
  const std::int64_t n = logical / width / height / channels;
  return ((n * height + h) * width + w) * channels + c;
}

namespace detail {

template <typename T>
T load(std::span<const std::byte> bytes, std::int64_t position) {
  T value;
  std::memcpy(&value, bytes.data() + position * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <typename T>
void store(std::span<std::byte> bytes, std::int64_t position, T value) {
  std::memcpy(bytes.data() + position * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

}  // namespace detail

inline double decode(DType dtype, std::span<const std::byte> bytes, std::int64_t position) {
  using detail::load;
  switch (dtype) {
    case DType::f64:
      return load<double>(bytes, position);
    case DType::f32:
      return load<float>(bytes, position);
    case DType::f16:
      return float_from_half(load<std::uint16_t>(bytes, position));
    case DType::i32:
      return load<std::int32_t>(bytes, position);
    case DType::u8:
      return load<std::uint8_t>(bytes, position);
    case DType::u4:
      return (load<std::uint8_t>(bytes, position / 2) >> (position % 2 * 4)) & 15;
    case DType::bit:
      return (load<std::uint8_t>(bytes, position / 8) >> (position % 8)) & 1;
    case DType::bf16:
      return float_from_bfloat(load<std::uint16_t>(bytes, position));
  }
  throw InternalError(fmt::format("no conformance test stores {}", name_of(dtype)));
}

// The bytes begin as zeros: small numbers are added to their neighbors.
inline void encode(DType dtype, std::span<std::byte> bytes, std::int64_t position, double value) {
  using detail::load;
  using detail::store;
  const auto add_bits = [&](std::int64_t byte, std::int64_t shift) {
    store(bytes, byte, static_cast<std::uint8_t>(load<std::uint8_t>(bytes, byte) | (static_cast<unsigned>(value) << shift)));
  };
  switch (dtype) {
    case DType::f64:
      return store(bytes, position, value);
    case DType::f32:
      return store(bytes, position, static_cast<float>(value));
    case DType::f16:
      return store(bytes, position, half_from_double(value));
    case DType::i32:
      return store(bytes, position, static_cast<std::int32_t>(value));
    case DType::u8:
      return store(bytes, position, static_cast<std::uint8_t>(value));
    case DType::u4:
      return add_bits(position / 2, position % 2 * 4);
    case DType::bit:
      return add_bits(position / 8, position % 8);
    case DType::bf16:
      return store(bytes, position, bfloat_from_double(value));
  }
  throw InternalError(fmt::format("no conformance test stores {}", name_of(dtype)));
}

inline std::vector<std::byte> encode(const Type& type, const std::vector<double>& logical) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(type.bytes().count()));
  for (std::int64_t i = 0; i < type.elements(); ++i)
    encode(type.dtype, bytes, position_of(type, i), logical[static_cast<std::size_t>(i)]);
  return bytes;
}

inline std::vector<double> decode(const Type& type, std::span<const std::byte> bytes) {
  std::vector<double> logical;
  for (std::int64_t i = 0; i < type.elements(); ++i) logical.push_back(decode(type.dtype, bytes, position_of(type, i)));
  return logical;
}

// What is left of a number once it is stored.
inline double rounded_to(DType dtype, double value) {
  if (dtype == DType::f32) return static_cast<float>(value);
  if (dtype == DType::f16) return float_from_half(half_from_double(value));
  if (dtype == DType::bf16) return float_from_bfloat(bfloat_from_double(value));
  return value;
}

}  // namespace snug::conformance
