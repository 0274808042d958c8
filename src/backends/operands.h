// What a kernel's operands hold, and whether a backend's kernels can read them: the part of matching that does not depend on the
// kernel. A backend lists the types that it computes with; a kernel says what each operand holds and has one function for each of
// those types.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "ir/kernel.h"

namespace snug::backends {

enum class Element : std::uint8_t {
  real,         // in the type that the node computes with
  statistic,    // f32, or f64 in nodes that compute in f64: statistics, and the parameters of normalization
  single,       // f32 always
  index,        // i32: which row, where rows begin
  labels,       // i32: which class
  codes,        // u8: numbers in few bits
  halves,       // f16 always: moments under a scale
  scales,       // f32: what codes are multiplied by
  packed,       // u8: bit-packed numbers of any width
  image_bytes,  // u8
  bits,         // bit
  argmax,       // u4 or u8
  scalars,      // u8: the block that changes between steps
  metrics,      // f64: sums of losses, norms, counts
};

// What some operands hold, in order; the others hold `rest`.
struct ElementList {
  std::array<Element, 16> listed{};
  std::size_t count = 0;
  Element rest = Element::real;

  constexpr ElementList() = default;
  // Too many elements do not compile.
  consteval ElementList(std::initializer_list<Element> elements) {
    for (const Element element : elements) listed[count++] = element;
  }
  consteval ElementList and_all(Element others) const {
    ElementList list = *this;
    list.rest = others;
    return list;
  }

  constexpr Element operator[](std::size_t i) const { return i < count ? listed[i] : rest; }
};

// Of a kernel.
struct Elements {
  ElementList inputs{};
  ElementList outputs{};
};

struct OperandRules {
  std::string_view who;                                                   // the subject of messages: "the reference"
  std::span<const DType> real;                                            // the types it computes with
  std::function<std::optional<std::string>(const Type&)> also = nullptr;  // another reason to refuse an operand of the right type
};

// Why the operands cannot be taken ("input 1 is f16[2x3]: ..."); nothing when they can.
std::optional<std::string> refusal(const OperandRules& rules, const Elements& elements, const KernelQuery& query);

// The dtype of the first real operand; f32 where there is none.
DType computing_dtype(const Elements& elements, std::span<const Operand> inputs, std::span<const Operand> outputs);

// The dtype of a C++ type that values are stored as. A backend adds its own.
template <typename T>
inline constexpr DType kStoredAs = [] {
  static_assert(sizeof(T) == 0, "say what this type is stored as");
  return DType::f32;
}();
template <>
inline constexpr DType kStoredAs<float> = DType::f32;
template <>
inline constexpr DType kStoredAs<double> = DType::f64;

// The types that a backend computes with.
template <typename... T>
struct RealTypes {
  static constexpr std::array<DType, sizeof...(T)> kDTypes{kStoredAs<T>...};

  static constexpr bool contains(DType dtype) { return std::ranges::find(kDTypes, dtype) != kDTypes.end(); }

  // The index of this type in a table of functions; the number of types when it is none of them.
  static constexpr std::size_t place_of(DType dtype) {
    return static_cast<std::size_t>(std::ranges::find(kDTypes, dtype) - kDTypes.begin());
  }

  // One function each: FunctionOf is a function, the same for every type, or []<typename T>() { return function<T>; }.
  template <auto FunctionOf>
  static constexpr auto functions() {
    if constexpr (std::is_pointer_v<decltype(FunctionOf)>) {
      return std::array{(static_cast<void>(kStoredAs<T>), FunctionOf)...};
    } else {
      return std::array{FunctionOf.template operator()<T>()...};
    }
  }

  // body(T{}) for the type that is stored as `dtype`, which is one of them.
  template <typename Body>
  static auto with(DType dtype, const Body& body) {
    return with_one_of<Body, T...>(dtype, body);
  }

 private:
  template <typename Body, typename First, typename... Rest>
  static auto with_one_of(DType dtype, const Body& body) {
    if constexpr (sizeof...(Rest) > 0) {
      if (dtype != kStoredAs<First>) return with_one_of<Body, Rest...>(dtype, body);
    }
    return body(First{});
  }
};

}  // namespace snug::backends
