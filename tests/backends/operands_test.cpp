// What kernels' operands may hold, whatever the backend.
#include "backends/operands.h"

#include <gtest/gtest.h>

#include "backends/cpu/storage.h"
#include "backends/reference/call.h"
#include "base/error.h"
#include "ops/ops.h"
#include "support/messages.h"

namespace snug::backends {
namespace {

constexpr std::array<DType, 3> kThree{DType::f32, DType::f16, DType::bf16};

std::string refusal_of(const Elements& elements, const std::vector<DType>& inputs, const std::vector<DType>& outputs,
                       std::span<const DType> real = kThree) {
  const auto types = [](const std::vector<DType>& dtypes) {
    std::vector<Type> result;
    for (const DType dtype : dtypes) result.push_back({.dtype = dtype, .shape = {2}});
    return result;
  };
  const Attributes attributes;
  const std::vector<Type> in = types(inputs), out = types(outputs);
  const KernelQuery query{.op = ops::add, .attributes = attributes, .inputs = in, .outputs = out};
  return refusal({.who = "it", .real = real}, elements, query).value_or("");
}

TEST(Operands, ARealOneIsOfAnyTypeThatIsComputedWith) {
  for (const DType dtype : kThree) EXPECT_EQ(refusal_of({}, {dtype, dtype}, {dtype}), "");
  EXPECT_TRUE(support::mentions(refusal_of({}, {DType::f64}, {}), {"0", "f64[2]", "computes", "f32", "f16", "bf16"}));
  EXPECT_TRUE(
      support::mentions(refusal_of({}, {DType::i32}, {}, std::span(kThree).first(1)), {"0", "i32[2]", "computes", "f32"}));
}

TEST(Operands, RealOnesAreAlike) {
  EXPECT_TRUE(support::mentions(refusal_of({}, {DType::f16, DType::bf16}, {DType::f16}), {"1", "bf16[2]", "f16", "operand"}));
  EXPECT_TRUE(support::mentions(refusal_of({}, {DType::f16}, {DType::f32}), {"0", "f32[2]", "operand", "f16"}));
}

// Also where they stand before the real operand that decides.
TEST(Operands, StatisticsAreAsWideAsTheComputingTypeAndAtLeastF32) {
  constexpr Elements kElements{.inputs = {Element::statistic, Element::real}};
  constexpr std::array<DType, 3> kWithDouble{DType::f32, DType::f64, DType::bf16};
  for (const DType dtype : {DType::f32, DType::bf16}) EXPECT_EQ(refusal_of(kElements, {DType::f32, dtype}, {}, kWithDouble), "");
  EXPECT_EQ(refusal_of(kElements, {DType::f64, DType::f64}, {}, kWithDouble), "");
  EXPECT_TRUE(support::mentions(refusal_of(kElements, {DType::bf16, DType::bf16}, {}, kWithDouble),
                                {"0", "bf16[2]", "normalization", "f32"}));
  EXPECT_TRUE(support::mentions(refusal_of(kElements, {DType::f32, DType::f64}, {}, kWithDouble),
                                {"0", "f32[2]", "normalization", "f64"}));
}

// A weight in codes with their scales beside activations of 16 bits, an index, sums: each operand by itself.
TEST(Operands, EveryOneHasItsOwnType) {
  constexpr Elements kElements{
      .inputs = {Element::real, Element::codes, Element::scales, Element::index, Element::single, Element::packed},
      .outputs = {Element::real, Element::metrics, Element::argmax}};
  const std::vector<DType> right{DType::bf16, DType::u8, DType::f32, DType::i32, DType::f32, DType::u8};
  for (const DType argmax : {DType::u4, DType::u8})
    EXPECT_EQ(refusal_of(kElements, right, {DType::bf16, DType::f64, argmax}), "");
  const auto with = [&](std::size_t i, DType dtype) {
    std::vector<DType> wrong = right;
    wrong[i] = dtype;
    return refusal_of(kElements, wrong, {DType::bf16, DType::f64, DType::u4});
  };
  EXPECT_EQ(with(1, DType::bf16), "input 1 is bf16[2]: codes are u8");
  EXPECT_TRUE(support::mentions(with(2, DType::bf16), {"bf16[2]", "codes", "f32"}));
  EXPECT_EQ(with(3, DType::f32), "input 3 is f32[2]: indices are i32");
  EXPECT_TRUE(support::mentions(with(4, DType::bf16), {"4", "bf16[2]", "f32", "whatever"}));
  EXPECT_TRUE(support::mentions(with(5, DType::i32), {"5", "i32[2]", "packed", "u8"}));
  EXPECT_EQ(refusal_of(kElements, right, {DType::bf16, DType::f32, DType::u4}), "output 1 is f32[2]: metrics are f64");
  EXPECT_TRUE(support::mentions(refusal_of(kElements, right, {DType::bf16, DType::f64, DType::bit}), {"bit[2]", "argmax", "u8"}));
}

// However many there are.
TEST(Operands, WhatIsNotListedIsLikeTheRest) {
  constexpr Elements kReal{.inputs = {Element::scalars}};
  constexpr Elements kMetrics{.inputs = ElementList{Element::scalars}.and_all(Element::metrics)};
  std::vector<DType> inputs(30, DType::f16);
  inputs[0] = DType::u8;
  EXPECT_EQ(refusal_of(kReal, inputs, {}), "");
  EXPECT_EQ(refusal_of(kMetrics, inputs, {}), "input 1 is f16[2]: metrics are f64");
  std::fill(inputs.begin() + 1, inputs.end(), DType::f64);
  EXPECT_EQ(refusal_of(kMetrics, inputs, {}), "");
  inputs[29] = DType::f16;
  EXPECT_EQ(refusal_of(kMetrics, inputs, {}), "input 29 is f16[2]: metrics are f64");
}

template <typename T>
std::size_t size_of_one() {
  return sizeof(T);
}
std::size_t seven() { return 7; }

TEST(RealTypes, ATableHasAFunctionForEachInTheOrderOfTheList) {
  constexpr auto kSizes = reference::Reals::functions<[]<typename T>() { return size_of_one<T>; }>();
  static_assert(kSizes.size() == 2);
  EXPECT_EQ(kSizes[reference::Reals::place_of(DType::f32)](), 4U);
  EXPECT_EQ(kSizes[reference::Reals::place_of(DType::f64)](), 8U);
  EXPECT_FALSE(reference::Reals::contains(DType::bf16));
  constexpr auto kSame = reference::Reals::functions<seven>();
  EXPECT_EQ(kSame[0](), 7U);
  EXPECT_EQ(kSame[1](), 7U);
}

TEST(RealTypes, WithGivesTheTypeThatIsStored) {
  const auto dtype_of = [](auto value) { return kStoredAs<decltype(value)>; };
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) EXPECT_EQ(cpu::with_storage(dtype, dtype_of), dtype);
  EXPECT_THROW(cpu::with_storage(DType::f64, dtype_of), InternalError);
}

}  // namespace
}  // namespace snug::backends
