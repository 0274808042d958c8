// What a gated linear unit does to its first half, read from the attributes; shape inference and kernels share it.
#pragma once

#include <cstdint>

#include "ir/attributes.h"

namespace snug::ops {

enum class GateActivation : std::uint8_t { sigmoid, silu, gelu_by_tanh };

// The attribute `activation`; UserError unless it is 0, 1 or 2.
GateActivation gate_activation(const Attributes& attributes);

}  // namespace snug::ops
