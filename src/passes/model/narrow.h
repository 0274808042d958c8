// Stores a model's numbers in a type other than the f32 that it is built in: parameters, staged features, and every value that is
// made from them, gradients and optimizer states. What ops want wide beside narrow values (the parameters and statistics of
// normalization, OpDef::wide_inputs) stays f32; beside f64 it is f64 too. Initial values are drawn as for f32 and rounded.
// Changes the model's results: rung `precision`.
//
//   state conv1.weight : f32[16x3x3x3]/channels_last       ->   state conv1.weight : bf16[16x3x3x3]/channels_last
//   state bn1.weight : f32[16]                                  state bn1.weight : f32[16]
#pragma once

#include "ir/program.h"

namespace snug {

// `dtype`: bf16, f16, f32 or f64.
Program narrow(Program model, DType dtype);

}  // namespace snug
