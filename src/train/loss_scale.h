// Dynamic loss scaling for fp16: the scale is halved when a gradient overflows, and doubled again after many steps in which none
// did. Numbers below 2^-24 become zero in a half, so the largest scale that does not overflow keeps most of them.
#pragma once

#include <algorithm>
#include <cstdint>

namespace snug::train {

struct LossScale {
  static constexpr double kFirst = 65536;
  static constexpr double kLeast = 1;
  static constexpr double kMost = 0x1p32;
  static constexpr std::uint64_t kGrowAfter = 2000;

  double scale = kFirst;
  std::uint64_t good_steps = 0;     // since the scale changed, or a step was skipped
  std::uint64_t skipped_steps = 0;  // of the whole run

  friend bool operator==(const LossScale&, const LossScale&) = default;

  // After a step whose gradients are all finite.
  void grow(std::uint64_t grow_after) {
    if (++good_steps < grow_after) return;
    scale = std::min(kMost, 2 * scale);
    good_steps = 0;
  }
  // After one whose loss or gradients are not. False when the scale is not to blame: it cannot be smaller.
  bool shrink() {
    if (scale <= kLeast) return false;
    scale = std::max(kLeast, scale / 2);
    good_steps = 0;
    ++skipped_steps;
    return true;
  }
};

}  // namespace snug::train
