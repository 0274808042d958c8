#include "ir/type.h"

#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/messages.h"

namespace snug {
namespace {

std::string refusal(const std::vector<std::int64_t>& dims) {
  try {
    return "accepted " + to_string(Shape(dims));
  } catch (const UserError& error) {
    return error.what();
  }
}

Type opaque(Type type, const std::string& name, std::int64_t bytes) {
  type.layout = {.kind = Layout::Kind::opaque, .opaque_name = name, .opaque_bytes = Bytes(bytes)};
  return type;
}

TEST(Shape, CountsItsElements) {
  EXPECT_EQ(Shape{}.elements(), 1);  // a scalar
  EXPECT_EQ(Shape({7}).elements(), 7);
  EXPECT_EQ(Shape({2, 3, 4, 5, 6, 7}).elements(), 5040);
  EXPECT_EQ(to_string(Shape({100, 16, 32, 32})), "[100x16x32x32]");
  EXPECT_NE(Shape({2, 3}), Shape({3, 2}));
  EXPECT_NE(Shape({2}), Shape({2, 1}));
}

TEST(Shape, RefusesDimensionsThatAreNotPositive) {
  EXPECT_TRUE(support::mentions(refusal({0}), {"dimension", "0", "1"}));
  EXPECT_TRUE(support::mentions(refusal({5, -3}), {"dimension", "1", "-3"}));
  EXPECT_TRUE(support::mentions(refusal({1, 1, 1, 1, 1, 1, 1}), {"7 dimensions", "6"}));
}

TEST(Shape, RefusesMoreElementsThanBytesCanCount) {
  EXPECT_EQ(Shape({std::int64_t{1} << 48}).elements(), std::int64_t{1} << 48);
  EXPECT_EQ(refusal({1 << 24, (1 << 24) + 1}), "shape [16777216x16777217] has more than 2^48 elements");
  EXPECT_EQ(refusal({std::numeric_limits<std::int64_t>::max(), 2}), "shape [9223372036854775807x2] has more than 2^48 elements");
}

TEST(TypeBytes, FollowFromElementsAndTheirBits) {
  EXPECT_EQ((Type{.dtype = DType::f64, .shape = {3, 5}}.bytes()), Bytes(120));
  EXPECT_EQ((Type{.dtype = DType::f32, .shape = {3, 5}}.bytes()), Bytes(60));
  EXPECT_EQ((Type{.dtype = DType::f16, .shape = {3, 5}}.bytes()), Bytes(30));
  EXPECT_EQ((Type{.dtype = DType::bf16, .shape = {3, 5}}.bytes()), Bytes(30));
  EXPECT_EQ((Type{.dtype = DType::i32, .shape = {3, 5}}.bytes()), Bytes(60));
  EXPECT_EQ((Type{.dtype = DType::u8, .shape = {3, 5}}.bytes()), Bytes(15));
  EXPECT_EQ((Type{.dtype = DType::f32, .shape = {}}.bytes()), Bytes(4));
}

TEST(TypeBytes, RoundPartialBytesUp) {
  EXPECT_EQ((Type{.dtype = DType::bit, .shape = {8}}.bytes()), Bytes(1));
  EXPECT_EQ((Type{.dtype = DType::bit, .shape = {9}}.bytes()), Bytes(2));
  EXPECT_EQ((Type{.dtype = DType::u4, .shape = {3, 5}}.bytes()), Bytes(8));
}

TEST(TypeBytes, OfAnOpaqueLayoutAreWhatTheLibrarySays) {
  EXPECT_EQ(opaque({.dtype = DType::f32, .shape = {3}}, "blocked16", 64).bytes(), Bytes(64));
}

TEST(TypeBytes, OfTheLargestShapeDoNotOverflow) {
  EXPECT_EQ((Type{.dtype = DType::f64, .shape = {std::int64_t{1} << 48}}.bytes()), Bytes(std::int64_t{1} << 51));
}

TEST(TypeText, SaysTheLayout) {
  const Type type{.dtype = DType::f32, .shape = {16, 3, 3, 3}};
  EXPECT_EQ(to_string(type), "f32[16x3x3x3]");
  EXPECT_EQ((to_string(Type{.dtype = DType::bit, .shape = {16, 3}, .layout = Layout::channels_last()})),
            "bit[16x3]/channels_last");
  EXPECT_EQ(to_string(opaque(type, "OIhw16o", 4096)), "f32[16x3x3x3]/opaque(OIhw16o,4096)");
}

TEST(DType, NamesReadBack) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i32, DType::u8, DType::u4, DType::bit}) {
    EXPECT_EQ(parse_dtype(name_of(dtype)), dtype);
  }
  EXPECT_EQ(parse_dtype("f33"), std::nullopt);
  EXPECT_EQ(parse_dtype(""), std::nullopt);
}

TEST(Strides, FollowTheLayout) {
  const Shape shape{2, 3, 4, 5};
  using Strides = std::array<std::int64_t, Shape::kMaxRank>;
  EXPECT_EQ(strides_of({.dtype = DType::f32, .shape = shape}), (Strides{60, 20, 5, 1}));
  EXPECT_EQ(strides_of({.dtype = DType::f32, .shape = shape, .layout = Layout::channels_last()}), (Strides{60, 1, 15, 3}));
  EXPECT_EQ(strides_of({.dtype = DType::f32, .shape = {2, 3, 4}, .layout = Layout::channels_last()}), (Strides{12, 1, 3}));
  // A matrix has no pixels to put channels behind.
  EXPECT_EQ(strides_of({.dtype = DType::f32, .shape = {2, 3}, .layout = Layout::channels_last()}), (Strides{3, 1}));
  EXPECT_EQ(strides_of({.dtype = DType::f32, .shape = {}}), Strides{});
}

TEST(Strides, DoNotExistForWhatOnlyALibraryReads) {
  EXPECT_THROW(strides_of(opaque({.dtype = DType::f32, .shape = {3}}, "x", 64)), InternalError);
}

}  // namespace
}  // namespace snug
