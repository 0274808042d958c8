// Numbers of 16 bits: what is loaded, rounded and moved must be what the host's own arithmetic says, bit for bit.
#include <bit>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "backends/cpu/onednn/onednn.h"
#include "backends/cpu/simd/loops.h"
#include "backends/reference/support.h"

namespace snug::backends::cpu {
namespace {

constexpr std::int64_t kPatterns = 65536;

template <typename T>
class Storage : public testing::Test {};
using Stored = testing::Types<Bfloat16, Half>;
TYPED_TEST_SUITE(Storage, Stored);

template <typename T>
std::vector<T> all_patterns() {
  std::vector<T> patterns;
  for (std::int64_t i = 0; i < kPatterns; ++i) patterns.push_back({static_cast<std::uint16_t>(i)});
  return patterns;
}

TYPED_TEST(Storage, EveryPatternIsTheNumberItStandsFor) {
  const std::vector<TypeParam> patterns = all_patterns<TypeParam>();
  std::vector<float> numbers(patterns.size());
  simd::element_loops<TypeParam>().widen(patterns.data(), numbers.data(), kPatterns);
  std::vector<TypeParam> back(patterns.size());
  simd::element_loops<TypeParam>().narrow(numbers.data(), back.data(), kPatterns);
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    if (std::isnan(to_float(patterns[i]))) {
      EXPECT_TRUE(std::isnan(numbers[i]) && std::isnan(to_float(back[i]))) << i;
      continue;
    }
    EXPECT_EQ(std::bit_cast<std::uint32_t>(numbers[i]), std::bit_cast<std::uint32_t>(to_float(patterns[i]))) << i;
    EXPECT_EQ(back[i].bits, patterns[i].bits) << i;
  }
}

TYPED_TEST(Storage, NumbersBetweenAreRoundedToTheNearestAndTiesToEven) {
  std::vector<float> numbers;
  for (std::uint32_t i = 0; i < 200'000; ++i) {
    numbers.push_back(std::bit_cast<float>(i * 21'473U));                      // all exponents, NaNs too
    numbers.push_back(std::bit_cast<float>(0x38000000U + i * 1024U));          // near ties of both types
    numbers.push_back(std::ldexp(static_cast<float>(i % 4096U) + 0.5F, -25));  // halves below the normal ones
  }
  numbers.push_back(std::numeric_limits<float>::infinity());
  numbers.push_back(std::numeric_limits<float>::max());
  std::vector<TypeParam> rounded(numbers.size());
  const auto count = static_cast<std::int64_t>(numbers.size());
  simd::element_loops<TypeParam>().narrow(numbers.data(), rounded.data(), count);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const TypeParam expected = stored<TypeParam>(numbers[i]);
    if (std::isnan(numbers[i])) {
      ASSERT_TRUE(std::isnan(to_float(rounded[i]))) << i;
    } else {
      ASSERT_EQ(rounded[i].bits, expected.bits) << numbers[i];
    }
  }
}

TYPED_TEST(Storage, FreshFloatsAreRoundedBeforeTheyAreAdded) {
  const std::vector<TypeParam> sums(kPatterns, stored<TypeParam>(1.0));
  std::vector<float> fresh;
  for (std::int64_t i = 0; i < kPatterns; ++i) fresh.push_back(static_cast<float>(i) * 0x1p-20F);
  std::vector<TypeParam> out(sums.size());
  simd::element_loops<TypeParam>().add_floats(sums.data(), fresh.data(), out.data(), kPatterns);
  for (std::size_t i = 0; i < sums.size(); ++i)
    ASSERT_EQ(out[i].bits, stored<TypeParam>(1.0F + to_float(stored<TypeParam>(fresh[i]))).bits) << fresh[i];
}

TEST(Bfloats, RowsBecomePairsOfTheirRoundedNumbers) {
  constexpr std::int64_t kCount = 3 * 256;
  std::vector<float> rows;
  std::vector<Bfloat16> sum;
  Random draw(7);
  for (std::int64_t i = 0; i < kCount; ++i) {
    rows.push_back(static_cast<float>(draw()));
    sum.push_back(stored<Bfloat16>(draw()));
  }
  std::vector<Bfloat16> alone(kCount), added(kCount);
  simd::place_row_pairs(rows.data(), nullptr, alone.data(), kCount);
  simd::place_row_pairs(rows.data(), sum.data(), added.data(), kCount);
  for (std::int64_t i = 0; i < kCount; ++i) {
    const std::int64_t column = i % 32 / 2, row = i / 32 * 2 + i % 2;
    const auto at = static_cast<std::size_t>(i);
    const float expected = to_float(stored<Bfloat16>(rows[static_cast<std::size_t>(row * 16 + column)]));
    EXPECT_EQ(to_float(alone[at]), expected) << i;
    EXPECT_EQ(added[at].bits, stored<Bfloat16>(to_float(sum[at]) + expected).bits) << i;
  }
}

// 65,536 elements, one of each pattern, there and back.
TEST(OpaqueLayouts, NumbersOf16BitsChangeNoBit) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const Type plain{.dtype = dtype, .shape = {64, 64, 4, 4}};
    for (const char* name : {"ABcd8b16a2b", "ABcd16b16a", "ABcd8a16b2a"}) {
      Type blocked = plain;
      blocked.layout = {.kind = Layout::Kind::opaque, .opaque_name = name, .opaque_bytes = plain.bytes()};
      Tensor source(plain), target(blocked), back(plain);
      for (std::int64_t i = 0; i < kPatterns; ++i)
        reinterpret_cast<std::uint16_t*>(source.data())[i] = static_cast<std::uint16_t>(i);
      write_opaque(blocked, target.data(), 0, {source.data(), source.size()});
      EXPECT_FALSE(target.same_bytes(source));
      read_opaque(blocked, target.data(), 0, {back.data(), back.size()});
      EXPECT_TRUE(back.same_bytes(source)) << name;
      EXPECT_TRUE(target.guards_intact() && back.guards_intact());
    }
  }
}

// In two stretches, with and without padding: as oneDNN's own reorder of the whole.
TEST(OpaqueLayouts, ElementsLieWhereOneDnnPutsThem) {
  for (const char* name :
       {"ABcd16b16a", "Acdb16a", "ABcd8b8a", "Acdb8a", "ABcd16a16b", "BAcd16a16b", "ABcd8a8b", "ABcd8b16a2b", "ABcd8a16b2a"}) {
    for (const Shape& shape : {Shape{32, 16, 3, 3}, Shape{20, 5, 2, 1}}) {
      const Type plain{.dtype = DType::f32, .shape = shape};
      Type blocked = plain;
      blocked.layout = {.kind = Layout::Kind::opaque, .opaque_name = name, .opaque_bytes = {}};
      blocked.layout.opaque_bytes = size_of(descriptor(blocked));
      Tensor source = Tensor::random(plain, 1);
      Tensor expected(blocked), target(blocked), back(plain);
      PrimitiveChain reorder;
      reorder.add_reorder(memory_at(descriptor(plain), source.data()), memory_at(descriptor(blocked), expected.data()));
      reorder.run();

      std::memset(target.data(), 0, target.size());
      const std::span<std::byte> whole(source.data(), source.size());
      const std::size_t cut = source.size() / 12 * 4;
      write_opaque(blocked, target.data(), static_cast<std::int64_t>(cut / 4), whole.subspan(cut));
      write_opaque(blocked, target.data(), 0, whole.first(cut));
      EXPECT_TRUE(target.same_bytes(expected)) << name;
      const std::span<std::byte> read(back.data(), back.size());
      read_opaque(blocked, expected.data(), static_cast<std::int64_t>(cut / 4), read.subspan(cut));
      read_opaque(blocked, expected.data(), 0, read.first(cut));
      EXPECT_TRUE(back.same_bytes(source)) << name;
      EXPECT_TRUE(target.guards_intact() && back.guards_intact());
    }
  }
}

}  // namespace
}  // namespace snug::backends::cpu
