// Convolution by oneDNN.
#pragma once

#include <optional>

#include "ir/kernel.h"

namespace snug::backends::cpu {

extern const KernelDef onednn_conv2d;
extern const KernelDef onednn_conv2d_grad_input;
extern const KernelDef onednn_conv2d_grad_weight;

// The gradients a slice of channels at a time, for a fraction of the workspace; slower, and with other sums. conv2d_slices.cpp
extern const KernelDef onednn_conv2d_grad_input_quarters;
extern const KernelDef onednn_conv2d_grad_input_blocks;
extern const KernelDef onednn_conv2d_grad_weight_quarters;
extern const KernelDef onednn_conv2d_grad_weight_blocks;

// Numbers of 16 bits through floats in the workspace, where there is no convolution of them; slower with less of it.
// conv2d_half_kernels.cpp
extern const KernelDef half_conv2d;
extern const KernelDef half_conv2d_small;
extern const KernelDef half_conv2d_least;
extern const KernelDef half_conv2d_grad_input;
extern const KernelDef half_conv2d_grad_input_small;
extern const KernelDef half_conv2d_grad_input_least;
extern const KernelDef half_conv2d_grad_weight;
extern const KernelDef half_conv2d_grad_weight_small;
extern const KernelDef half_conv2d_grad_weight_least;

// The weight gradient in bf16 where the processor multiplies pairs, each row by one thread. conv2d_pairs.cpp
extern const KernelDef pairs_conv2d_grad_weight;

// The weight gradient on one thread, whose transposed images need half the workspace of two. conv2d.cpp
extern const KernelDef onednn_conv2d_grad_weight_one_thread;

// For a forward convolution, the layout in which the weight gradient comes out, when the forward pass can read it too: then
// neither needs a copy. For a data gradient, the one that it reads without a copy.
std::optional<Layout> preferred_conv2d_weight_layout(const KernelQuery& query);

}  // namespace snug::backends::cpu
