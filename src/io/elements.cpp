#include "io/elements.h"

#include <cstring>

#include "base/error.h"
#include "base/half.h"

namespace snug::io {

namespace {

struct StoredHalf {
  std::uint16_t bits = 0;
  StoredHalf() = default;
  explicit StoredHalf(double value) : bits(half_from_double(value)) {}
  explicit operator double() const { return float_from_half(bits); }
};

struct StoredBfloat {
  std::uint16_t bits = 0;
  StoredBfloat() = default;
  explicit StoredBfloat(double value) : bits(bfloat_from_double(value)) {}
  explicit operator double() const { return float_from_bfloat(bits); }
};

template <typename F>
void with_floating_type(DType dtype, F f) {
  switch (dtype) {
    case DType::f64:
      return f(double{});
    case DType::f32:
      return f(float{});
    case DType::f16:
      return f(StoredHalf{});
    case DType::bf16:
      return f(StoredBfloat{});
    default:
      SNUG_CHECK(false, "{} is not a floating-point type", name_of(dtype));
  }
}

// Calls copy(place in logical order, place in memory), in elements, for every element.
template <typename Copy>
void for_each_element(const Type& type, Copy copy) {
  const auto dims = type.shape.dims();
  // channels_last is outer, rest, dimension 1; logical order is outer, dimension 1, rest.
  const auto outer = static_cast<std::size_t>(dims[0]);
  const auto channels = static_cast<std::size_t>(dims[1]);
  const std::size_t rest = static_cast<std::size_t>(type.elements()) / outer / channels;
  for (std::size_t o = 0; o < outer; ++o) {
    const std::size_t base = o * channels * rest;
    for (std::size_t c = 0; c < channels; ++c) {
      for (std::size_t r = 0; r < rest; ++r) copy(base + c * rest + r, base + r * channels + c);
    }
  }
}

// Calls f with an unsigned integer as wide as an element.
template <typename F>
void with_element_width(DType dtype, F f) {
  switch (bits_per_element(dtype)) {
    case 64:
      return f(std::uint64_t{});
    case 32:
      return f(std::uint32_t{});
    case 16:
      return f(std::uint16_t{});
    case 8:
      return f(std::uint8_t{});
    default:
      SNUG_CHECK(false, "elements of {} cannot be put in another order", name_of(dtype));
  }
}

bool is_in_logical_order(const Type& type) { return type.layout.kind == Layout::Kind::row_major || type.shape.rank() < 3; }

void check_sizes(const Type& type, std::size_t a, std::size_t b) {
  SNUG_CHECK(type.layout.kind != Layout::Kind::opaque, "{} has no order of elements", to_string(type));
  SNUG_CHECK(a == b && a == static_cast<std::size_t>(type.bytes().count()), "{} has {} bytes, not {} and {}", to_string(type),
             type.bytes().count(), a, b);
}

}  // namespace

void to_logical_order(const Type& type, std::span<const std::byte> stored, std::span<std::byte> logical) {
  check_sizes(type, stored.size(), logical.size());
  if (is_in_logical_order(type)) {
    std::memcpy(logical.data(), stored.data(), stored.size());
    return;
  }
  with_element_width(type.dtype, [&]<typename T>(T /*tag*/) {
    for_each_element(type, [&](std::size_t place, std::size_t at) {
      std::memcpy(logical.data() + place * sizeof(T), stored.data() + at * sizeof(T), sizeof(T));
    });
  });
}

void from_logical_order(const Type& type, std::span<const std::byte> logical, std::span<std::byte> stored) {
  check_sizes(type, stored.size(), logical.size());
  if (is_in_logical_order(type)) {
    std::memcpy(stored.data(), logical.data(), logical.size());
    return;
  }
  with_element_width(type.dtype, [&]<typename T>(T /*tag*/) {
    for_each_element(type, [&](std::size_t place, std::size_t at) {
      std::memcpy(stored.data() + at * sizeof(T), logical.data() + place * sizeof(T), sizeof(T));
    });
  });
}

bool all_finite(DType dtype, std::span<const std::byte> elements) {
  bool finite = true;
  // An element whose exponent has all bits set is infinite or not a number.
  const auto look = [&](auto exponent) {
    using Bits = decltype(exponent);
    for (std::size_t at = 0; at + sizeof(Bits) <= elements.size(); at += sizeof(Bits)) {
      Bits bits;
      std::memcpy(&bits, elements.data() + at, sizeof bits);
      finite = finite && static_cast<Bits>(bits & exponent) != exponent;
    }
  };
  switch (dtype) {
    case DType::f64:
      look(std::uint64_t{0x7FF0'0000'0000'0000});
      break;
    case DType::f32:
      look(std::uint32_t{0x7F80'0000});
      break;
    case DType::f16:
      look(std::uint16_t{0x7C00});
      break;
    case DType::bf16:
      look(std::uint16_t{0x7F80});
      break;
    default:
      SNUG_CHECK(false, "{} is not a floating-point type", name_of(dtype));
  }
  return finite;
}

void convert_elements(DType from, std::span<const std::byte> source, DType to, std::span<std::byte> target) {
  if (from == to) {  // not through doubles: a NaN keeps its payload
    SNUG_CHECK(source.size() == target.size(), "{} bytes cannot become {}", source.size(), target.size());
    std::memcpy(target.data(), source.data(), source.size());
    return;
  }
  with_floating_type(from, [&]<typename From>(From /*tag*/) {
    with_floating_type(to, [&]<typename To>(To /*tag*/) {
      const std::size_t count = source.size() / sizeof(From);
      SNUG_CHECK(count * sizeof(From) == source.size() && count * sizeof(To) == target.size(),
                 "{} bytes of {} cannot become {} of {}", source.size(), name_of(from), target.size(), name_of(to));
      for (std::size_t i = 0; i < count; ++i) {
        From element;
        std::memcpy(&element, source.data() + i * sizeof(From), sizeof(From));
        const To converted = static_cast<To>(static_cast<double>(element));
        std::memcpy(target.data() + i * sizeof(To), &converted, sizeof(To));
      }
    });
  });
}

}  // namespace snug::io
