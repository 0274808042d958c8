#include "train/logical_order.h"

#include <cstring>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "base/pieces.h"
#include "io/elements.h"

namespace snug::train {

namespace {

// An arena that is reached by copies alone, like a GPU's, and remembers the largest.
class FarArena : public Arena {
 public:
  explicit FarArena(std::size_t bytes) : bytes_(bytes) {
    size_ = Bytes(static_cast<std::int64_t>(bytes));
    data_ = bytes_.data();
  }
  bool host_accessible() const override { return is_near; }
  void write(Bytes offset, std::span<const std::byte> source) override {
    std::memcpy(bytes_.data() + offset.count(), source.data(), source.size());
    largest = std::max(largest, source.size());
  }
  void read(Bytes offset, std::span<std::byte> target) const override {
    std::memcpy(target.data(), bytes_.data() + offset.count(), target.size());
    largest = std::max(largest, target.size());
  }
  void fill_from(Bytes /*begin*/, Canary /*canary*/) override {}
  Bytes high_water_mark(Bytes begin, Canary /*canary*/) const override { return begin; }
  bool margins_untouched() const override { return true; }

  std::vector<std::byte> bytes_;
  bool is_near = false;
  mutable std::size_t largest = 0;
};

constexpr Bytes kOffset{64};

std::vector<std::byte> numbered(std::size_t bytes) {
  std::vector<std::byte> numbers(bytes);
  for (std::size_t i = 0; i < bytes; ++i) numbers[i] = static_cast<std::byte>((i * 2654435761U) >> 11U);
  return numbers;
}

struct Case {
  DType dtype;
  Shape shape;
};

class ChannelsLast : public testing::TestWithParam<Case> {
 protected:
  Type type_{.dtype = GetParam().dtype, .shape = GetParam().shape, .layout = Layout::channels_last()};
  std::size_t size_ = static_cast<std::size_t>(type_.bytes().count());
  Backend backend_ = backends::cpu_backend(1);
};

TEST_P(ChannelsLast, PiecesAreThoseOfTheWholeAndNeverLargerThanOne) {
  FarArena arena(size_ + 64);
  const std::vector<std::byte> stored = numbered(size_);
  arena.write(kOffset, stored);
  std::vector<std::byte> whole(size_);
  io::to_logical_order(type_, stored, whole);
  LogicalOrder order(type_, backend_, arena, kOffset);
  arena.largest = 0;
  std::vector<std::byte> joined;
  order.read_in_pieces(0, order.bytes(), [&](std::span<const std::byte> piece) {
    EXPECT_LE(piece.size(), kPieceBytes);
    joined.insert(joined.end(), piece.begin(), piece.end());
  });
  EXPECT_TRUE(joined == whole);

  std::memset(arena.bytes_.data(), 0, arena.bytes_.size());
  std::size_t at = 0;
  order.write_in_pieces(0, order.bytes(), [&](std::span<std::byte> piece) {
    std::memcpy(piece.data(), whole.data() + at, piece.size());
    at += piece.size();
  });
  EXPECT_EQ(at, size_);
  EXPECT_TRUE(std::equal(stored.begin(), stored.end(), arena.bytes_.begin() + kOffset.count()));
  EXPECT_LE(arena.largest, kPieceBytes);
}

// Wherever it begins and ends: inside of rows, of channels, beyond several.
TEST_P(ChannelsLast, AnyStretchIsThatOfTheWhole) {
  FarArena arena(size_ + 64);
  const std::vector<std::byte> stored = numbered(size_);
  arena.write(kOffset, stored);
  std::vector<std::byte> whole(size_);
  io::to_logical_order(type_, stored, whole);
  LogicalOrder order(type_, backend_, arena, kOffset);
  const auto element = static_cast<std::size_t>(bits_per_element(type_.dtype)) / 8;
  const std::size_t elements = size_ / element;
  const std::size_t step = std::max<std::size_t>(1, elements / 13);
  for (std::size_t first = 0; first < elements; first += step) {
    for (const std::size_t count : {std::size_t{1}, step, 3 * step + 1, elements - first}) {
      const std::size_t bytes = std::min(count, elements - first) * element;
      std::vector<std::byte> part(bytes);
      order.read(first * element, part);
      ASSERT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(first * element)))
          << first << " " << count;
      for (std::byte& byte : part) byte ^= std::byte{0xFF};
      order.write(first * element, part);
      std::vector<std::byte> changed = whole;
      for (std::size_t i = 0; i < bytes; ++i) changed[first * element + i] ^= std::byte{0xFF};
      std::vector<std::byte> expected(size_);
      io::from_logical_order(type_, changed, expected);
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), arena.bytes_.begin() + kOffset.count())) << first << " " << count;
      arena.write(kOffset, stored);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, ChannelsLast,
                         testing::Values(Case{DType::f32, {5, 3, 3, 3}},      // many rows a piece
                                         Case{DType::bf16, {200, 70, 7, 5}},  // several pieces
                                         Case{DType::f32, {3, 9000, 3, 3}},   // a row is more than a piece
                                         Case{DType::f32, {2, 2, 300, 300}},  // so is a channel
                                         Case{DType::f64, {4, 6}},            // in one order anyway
                                         Case{DType::u8, {1, 5, 2, 3}}));

// ABcd16b16a by its definition: blocks of 16 outputs x 16 inputs for each place of the kernel, inputs slower than outputs.
TEST(OpaqueLayout, AnyStretchLiesWhereTheLayoutSays) {
  const Backend backend = backends::cpu_backend(1);
  constexpr std::int64_t kOutputs = 20;  // padded to 32
  constexpr std::int64_t kInputs = 30;   // padded to 32
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const auto size = static_cast<std::size_t>(bits_per_element(dtype)) / 8;
    const std::size_t stored_bytes = 32 * 32 * 9 * size;
    const Type type{.dtype = dtype,
                    .shape = {kOutputs, kInputs, 3, 3},
                    .layout = {.kind = Layout::Kind::opaque,
                               .opaque_name = "ABcd16b16a",
                               .opaque_bytes = Bytes(static_cast<std::int64_t>(stored_bytes))}};
    FarArena arena(stored_bytes + 64);
    arena.is_near = true;
    LogicalOrder order(type, backend, arena, kOffset);
    ASSERT_EQ(order.bytes(), kOutputs * kInputs * 9 * size);
    const std::vector<std::byte> whole = numbered(order.bytes());
    for (const std::size_t stretch : {std::size_t{1}, std::size_t{7}, std::size_t{2700}, std::size_t{5400}}) {
      std::memset(arena.bytes_.data(), 0, arena.bytes_.size());
      for_each_piece(whole.size(), stretch * size,
                     [&](std::size_t begin, std::size_t bytes) { order.write(begin, std::span(whole).subspan(begin, bytes)); });
      std::vector<std::byte> expected(arena.bytes_.size());
      for (std::int64_t o = 0; o < kOutputs; ++o) {
        for (std::int64_t i = 0; i < kInputs; ++i) {
          for (std::int64_t k = 0; k < 9; ++k) {
            const std::int64_t place = ((o / 16 * 2 + i / 16) * 9 + k) * 256 + i % 16 * 16 + o % 16;
            const std::int64_t number = (o * kInputs + i) * 9 + k;
            std::memcpy(expected.data() + 64 + static_cast<std::size_t>(place) * size,
                        whole.data() + static_cast<std::size_t>(number) * size, size);
          }
        }
      }
      ASSERT_TRUE(arena.bytes_ == expected) << stretch;
      std::vector<std::byte> back(whole.size());
      for_each_piece(whole.size(), stretch * size,
                     [&](std::size_t begin, std::size_t bytes) { order.read(begin, std::span(back).subspan(begin, bytes)); });
      ASSERT_TRUE(back == whole) << stretch;
    }
  }
}

}  // namespace

}  // namespace snug::train
