// The angles of rotary and rotary_at, for all backends. Every step is rounded to f32, as in Llama's own code and in transformers:
// published weights were trained with these angles, which are 4e-5 off from exact ones at position 1000.
#pragma once

#include <cstdint>
#include <vector>

#include "base/philox.h"
#include "ir/attributes.h"

namespace snug::ops {

// By which the angle of pair i grows per position: 1 / base^(2 i / head_size), 1 at most. The power is computed in f64 and
// rounded, so that it has the same bits on every machine; those of powf differ.
float rotary_frequency(double base, std::int64_t head_size, std::int64_t pair);
// Those of a head's pairs; negative where the op turns back.
std::vector<float> rotary_frequencies(const Attributes& attributes);

SNUG_HOST_DEVICE constexpr float rotary_angle(std::int64_t position, float frequency) {
  return static_cast<float>(position) * frequency;
}

}  // namespace snug::ops
