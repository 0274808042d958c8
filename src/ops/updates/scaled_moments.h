// AdamW's moments in 16 bits, for all backends. Gradients of neighboring layers differ by orders of magnitude, and their squares
// by twice as many: as plain halves most second moments would round to zero, and training diverges (Sohoni et al., "Low-Memory
// Neural Network Training", section 4.3.1). So a tensor's moments are halves times a scale, one for each of the two moments: a
// power of two, chosen anew in every step so that the largest moment is just below the largest half.
#pragma once

#include <cmath>

#include "base/philox.h"

namespace snug::ops {

// Of the largest of a tensor's first or second moments, which is finite. That moment is then stored as 2^14 to 2^15: stochastic
// rounding cannot make it infinite. Moments that are all tiny need no smaller scale, whose inverse would overflow.
SNUG_HOST_DEVICE inline float moment_scale(float largest) {
  const int exponent = std::ilogb(largest);  // very negative for 0
  return std::ldexp(1.0F, (exponent < -100 ? -100 : exponent) - 14);
}

// A second moment that is above 0 is stored as at least the smallest half. As 0 beside a first moment that is not, it would
// make the step m / epsilon.
inline constexpr float kLeastStoredMoment = 0x1p-24F;

}  // namespace snug::ops
