// Images resized as their rows arrive, so that no whole large image is ever in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace snug::data {

// Receives rows of 8-bit samples, top to bottom.
class RowSink {
 public:
  virtual ~RowSink() = default;
  // Once, before the first row. Both at least 1.
  virtual void begin(std::int64_t width, std::int64_t height) = 0;
  // A row of width * 3 bytes, R,G,B.
  virtual void row(std::span<const std::byte> pixels) = 0;
};

// For enlarging an axis from `from` to `to` pixels: the two source pixels around target pixel j,
// and their weights, over 2 * to.
struct Between {
  std::int64_t first = 0;
  std::int64_t second = 0;
  std::uint32_t first_weight = 0;
  std::uint32_t second_weight = 0;
};
Between between(std::int64_t j, std::int64_t from, std::int64_t to);

// Resizes to side x side x 3 bytes, H,W,C, in `target`. Each axis separately: averages over areas where it shrinks, interpolates
// linearly between pixel centers where it grows, copies where its size stays. Integer arithmetic, rounded once at the end: the
// same bytes everywhere. Memory: a few rows of the target, whatever the size of the source.
class Resizer : public RowSink {
 public:
  Resizer(std::int64_t side, std::span<std::byte> target);

  void begin(std::int64_t width, std::int64_t height) override;
  void row(std::span<const std::byte> pixels) override;
  // Whether all rows have arrived.
  bool complete() const { return height_ > 0 && next_row_ == height_; }

 private:
  void shrink_row(std::span<const std::byte> pixels);
  void stretch_row(std::span<const std::byte> pixels);
  void add_shrunk_row();
  void interpolate_rows();
  void write_row(std::int64_t y, std::uint64_t divisor);

  std::int64_t side_;
  std::span<std::byte> target_;
  std::int64_t width_ = 0;
  std::int64_t height_ = 0;
  std::int64_t next_row_ = 0;  // of the source
  std::int64_t next_target_row_ = 0;
  std::vector<std::uint32_t> current_;   // the current row at the target's width, times its divisor
  std::vector<std::uint32_t> previous_;  // the one before, when the height grows
  std::vector<std::uint64_t> sum_;       // the target's row being made
};

}  // namespace snug::data
