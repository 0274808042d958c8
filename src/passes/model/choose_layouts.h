// Gives each convolution weight the layout that the backend's kernels want, when all of the weight's readers agree. Its gradient
// and momentum follow, since they are made from its type; initial values and snapshots stay in logical order. Exact.
//
//   state conv1.weight : f32[32x16x3x3]/channels_last     ->   state conv1.weight : f32[32x16x3x3]/opaque(ABcd16b16a,18432)
#pragma once

#include "ir/kernel.h"
#include "ir/program.h"

namespace snug {

Program choose_layouts(Program model, const Backend& backend);

}  // namespace snug
