// The CUDA backend's kernels; plugin.cpp is the one list of them all, in order of preference. What an op means stands in its file
// in ops/.
#pragma once

#include "ir/kernel.h"

namespace snug::backends::cuda {

// Full f32; cuDNN with tensor cores; plain kernels for what both refuse.
extern const KernelDef gemm_conv2d;
extern const KernelDef gemm_conv2d_grad_input;
extern const KernelDef gemm_conv2d_grad_weight;
extern const KernelDef cudnn_conv2d;
extern const KernelDef cudnn_conv2d_grad_input;
extern const KernelDef cudnn_conv2d_grad_weight;
extern const KernelDef conv2d;
extern const KernelDef conv2d_grad_input;
extern const KernelDef conv2d_grad_weight;

// Weights of the sparse store, made dense in the workspace for the same kernels; straight from the nonzeros without any.
extern const KernelDef gemm_sparse_conv2d;
extern const KernelDef gemm_sparse_conv2d_grad_input;
extern const KernelDef gemm_sparse_conv2d_grad_weight;
extern const KernelDef cudnn_sparse_conv2d;
extern const KernelDef cudnn_sparse_conv2d_grad_input;
extern const KernelDef cudnn_sparse_conv2d_grad_weight;
extern const KernelDef direct_sparse_conv2d;
extern const KernelDef direct_sparse_conv2d_grad_input;
extern const KernelDef direct_sparse_conv2d_grad_weight;

// The store itself.
extern const KernelDef init_sparse_pattern;
extern const KernelDef init_sparse;
extern const KernelDef rewire;

// cuBLASLt, and plain kernels for what it refuses.
extern const KernelDef cublaslt_linear;
extern const KernelDef cublaslt_linear_grad_input;
extern const KernelDef cublaslt_linear_grad_weight;
extern const KernelDef linear;
extern const KernelDef linear_grad_input;
extern const KernelDef linear_grad_weight;

extern const KernelDef batch_norm_statistics;
extern const KernelDef batch_norm_apply;
extern const KernelDef batch_norm_running;
extern const KernelDef batch_norm_grad_reduce;
extern const KernelDef batch_norm_grad_input;
extern const KernelDef batch_norm_grad_fixed;

extern const KernelDef group_norm;
extern const KernelDef group_norm_grad_input;
extern const KernelDef group_norm_grad_parameters;

extern const KernelDef relu;
extern const KernelDef relu_grad;
extern const KernelDef relu_grad_bits;
extern const KernelDef sign_bits;

extern const KernelDef add;
extern const KernelDef add_metrics;

extern const KernelDef max_pool;
extern const KernelDef max_pool_grad;
extern const KernelDef max_pool_argmax;
extern const KernelDef max_pool_grad_argmax;

extern const KernelDef avg_pool;
extern const KernelDef avg_pool_grad;
extern const KernelDef global_avg_pool;
extern const KernelDef global_avg_pool_grad;

extern const KernelDef shortcut;
extern const KernelDef shortcut_grad;

extern const KernelDef sum_to_channels;
extern const KernelDef dropout;
extern const KernelDef reshape;
extern const KernelDef relayout;
extern const KernelDef copy_to_space;

extern const KernelDef softmax_cross_entropy;
extern const KernelDef softmax_cross_entropy_grad;

extern const KernelDef image_input;
extern const KernelDef sgd;
extern const KernelDef clipped_sgd;
extern const KernelDef clipped_sgd_with_momentum;
extern const KernelDef sum_of_squares;
extern const KernelDef clip_factor;
extern const KernelDef finite_factor;

extern const KernelDef fill;
extern const KernelDef fill_metrics;
extern const KernelDef init_normal;
extern const KernelDef init_uniform;

}  // namespace snug::backends::cuda
