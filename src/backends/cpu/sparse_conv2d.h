// Convolutions with weights of the sparse store.
#pragma once

#include "ir/kernel.h"

namespace snug::backends::cpu {

// The weight is expanded into the workspace as a whole, and oneDNN convolves: sparse_conv2d.cpp.
extern const KernelDef onednn_sparse_conv2d;
extern const KernelDef onednn_sparse_conv2d_grad_input;
extern const KernelDef onednn_sparse_conv2d_grad_weight;

// Without a dense gradient, for bf16 on processors that have the instructions: sparse_pairs.cpp.
extern const KernelDef pairs_sparse_conv2d_grad_weight;

// As expansion, for bf16 with less scratch: an image's stripes one after the other; as fast, so it comes before:
// sparse_stripes.cpp.
extern const KernelDef onednn_sparse_conv2d_grad_weight_stripes;

// The same, some output channels of a large weight at a time: sparse_slices.cpp.
extern const KernelDef onednn_sparse_conv2d_grad_weight_slices;

// Expansion for f16, through floats: sparse_half.cpp.
extern const KernelDef half_sparse_conv2d;
extern const KernelDef half_sparse_conv2d_grad_input;
extern const KernelDef half_sparse_conv2d_grad_weight;

// Straight from the nonzeros, with little workspace: sparse_direct.cpp.
extern const KernelDef direct_sparse_conv2d;
extern const KernelDef direct_sparse_conv2d_grad_input;
extern const KernelDef direct_sparse_conv2d_grad_weight;

// The store itself, with values of 16 bits: sparse_store.cpp.
extern const KernelDef half_init_sparse;
extern const KernelDef half_rewire;

// What a weight gradient begins with: the sum that it adds to, brought over where it lies elsewhere, or zeros.
std::unique_ptr<BoundKernel> begin_gradient(const KernelArguments& arguments);

}  // namespace snug::backends::cpu
