// The reference in f64, with every value rounded to what a model of another dtype would store. A backend that stores 16
// bits is held against this: its ReLUs and max-pools then decide alike, and what is left is the error of its kernels, not of the
// type itself.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/kernel.h"

namespace snug::conformance {

// f64 and f32: the plain reference in f64. Only one dtype at a time: kernels are plain functions, so the dtype is found through
// the backend made last.
Backend rounding_reference(DType stored);

// Up or down at random from now on, by the distance to either neighbor; nothing: to nearest again. How far gradients then move is
// what the type itself leaves open: a ReLU decides otherwise where its input rounds to the other neighbor.
void round_stochastically(std::optional<std::uint64_t> seed);

}  // namespace snug::conformance
