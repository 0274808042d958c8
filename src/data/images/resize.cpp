#include "data/images/resize.h"

#include <algorithm>

#include "base/error.h"

namespace snug::data {

namespace {

constexpr std::int64_t kChannels = 3;

// The sum of weights of a target pixel along an axis.
std::uint64_t divisor(std::int64_t from, std::int64_t to) { return static_cast<std::uint64_t>(from < to ? 2 * to : from); }

}  // namespace

// Centers of pixels lie at half-integers: target j is at (j + 1/2) * from / to - 1/2 of the source, clamped to it.
Between between(std::int64_t j, std::int64_t from, std::int64_t to) {
  const std::int64_t place = std::clamp((2 * j + 1) * from - to, std::int64_t{0}, 2 * to * (from - 1));
  Between result;
  result.first = place / (2 * to);
  result.second = std::min(result.first + 1, from - 1);
  result.second_weight = static_cast<std::uint32_t>(place % (2 * to));
  result.first_weight = static_cast<std::uint32_t>(2 * to) - result.second_weight;
  return result;
}

Resizer::Resizer(std::int64_t side, std::span<std::byte> target) : side_(side), target_(target) {
  SNUG_CHECK(side > 0 && static_cast<std::int64_t>(target.size()) == side * side * kChannels, "{} bytes for a side of {}",
             target.size(), side);
}

void Resizer::begin(std::int64_t width, std::int64_t height) {
  // Sums of 255 * width fit 32 bits.
  SNUG_CHECK(width > 0 && height > 0 && width < (1 << 24) && height < (1 << 24), "an image of {}x{}", width, height);
  width_ = width;
  height_ = height;
  next_row_ = 0;
  next_target_row_ = 0;
  const auto samples = static_cast<std::size_t>(side_ * kChannels);
  current_.assign(samples, 0);
  if (height < side_) previous_.assign(samples, 0);
  sum_.assign(samples, 0);
}

void Resizer::row(std::span<const std::byte> pixels) {
  SNUG_CHECK(next_row_ < height_ && static_cast<std::int64_t>(pixels.size()) == width_ * kChannels, "row {} of {} bytes",
             next_row_, pixels.size());
  if (height_ < side_) previous_.swap(current_);
  if (width_ < side_) {
    stretch_row(pixels);
  } else {
    shrink_row(pixels);
  }
  if (height_ < side_) {
    interpolate_rows();
  } else {
    add_shrunk_row();
  }
  ++next_row_;
}

// In units where a source's pixel is `side_` wide and a target's `width_`, overlaps are whole numbers.
void Resizer::shrink_row(std::span<const std::byte> pixels) {
  std::ranges::fill(current_, 0);
  std::int64_t x = 0;  // of the target
  for (std::int64_t i = 0; i < width_; ++i) {
    const std::int64_t begin = i * side_;
    const std::int64_t end = begin + side_;
    for (std::int64_t at = begin; at < end;) {
      const std::int64_t stop = std::min(end, (x + 1) * width_);
      const auto weight = static_cast<std::uint32_t>(stop - at);
      for (std::int64_t c = 0; c < kChannels; ++c) {
        current_[x * kChannels + c] += weight * std::to_integer<std::uint32_t>(pixels[i * kChannels + c]);
      }
      at = stop;
      if (stop == (x + 1) * width_) ++x;
    }
  }
}

void Resizer::stretch_row(std::span<const std::byte> pixels) {
  for (std::int64_t x = 0; x < side_; ++x) {
    const Between from = between(x, width_, side_);
    for (std::int64_t c = 0; c < kChannels; ++c) {
      current_[x * kChannels + c] = from.first_weight * std::to_integer<std::uint32_t>(pixels[from.first * kChannels + c]) +
                                    from.second_weight * std::to_integer<std::uint32_t>(pixels[from.second * kChannels + c]);
    }
  }
}

void Resizer::add_shrunk_row() {
  const std::int64_t end = (next_row_ + 1) * side_;
  for (std::int64_t at = next_row_ * side_; at < end;) {
    const std::int64_t target_end = (next_target_row_ + 1) * height_;
    const std::int64_t stop = std::min(end, target_end);
    const auto weight = static_cast<std::uint64_t>(stop - at);
    for (std::size_t i = 0; i < sum_.size(); ++i) sum_[i] += weight * current_[i];
    at = stop;
    if (stop == target_end) {
      write_row(next_target_row_++, divisor(width_, side_) * divisor(height_, side_));
      std::ranges::fill(sum_, 0);
    }
  }
}

// Writes the target's rows that lie above the current source row, or all remaining ones at the last row.
void Resizer::interpolate_rows() {
  for (; next_target_row_ < side_; ++next_target_row_) {
    const Between from = between(next_target_row_, height_, side_);
    if (from.second > next_row_) return;
    const std::vector<std::uint32_t>& first = from.first == next_row_ ? current_ : previous_;
    for (std::size_t i = 0; i < sum_.size(); ++i) {
      sum_[i] = std::uint64_t{from.first_weight} * first[i] + std::uint64_t{from.second_weight} * current_[i];
    }
    write_row(next_target_row_, divisor(width_, side_) * divisor(height_, side_));
  }
}

void Resizer::write_row(std::int64_t y, std::uint64_t divisor) {
  std::byte* out = target_.data() + y * side_ * kChannels;
  for (std::size_t i = 0; i < sum_.size(); ++i) out[i] = static_cast<std::byte>((sum_[i] + divisor / 2) / divisor);
}

}  // namespace snug::data
