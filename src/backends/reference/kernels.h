// The reference kernels, one for every op, and the one list of them all. What an op means stands in its file in ops/.
#pragma once

#include <array>

#include "ir/kernel.h"

namespace snug::backends::reference {

extern const KernelDef conv2d;
extern const KernelDef conv2d_grad_input;
extern const KernelDef conv2d_grad_weight;

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

extern const KernelDef gelu;
extern const KernelDef gelu_grad;

extern const KernelDef add;

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

extern const KernelDef linear;
extern const KernelDef linear_grad_input;
extern const KernelDef linear_grad_weight;

extern const KernelDef pack;
extern const KernelDef unpack;

extern const KernelDef sum_to_channels;
extern const KernelDef dropout;
extern const KernelDef reshape;
extern const KernelDef relayout;
extern const KernelDef copy_to_space;

extern const KernelDef softmax_cross_entropy;
extern const KernelDef softmax_cross_entropy_grad;

extern const KernelDef image_input;
extern const KernelDef sgd;
extern const KernelDef sgd_quantised;
extern const KernelDef adamw;
extern const KernelDef count_update;
extern const KernelDef momentum_add;
extern const KernelDef momentum_decay;
extern const KernelDef momentum_step;
extern const KernelDef sum_of_squares;
extern const KernelDef clip_factor;
extern const KernelDef finite_factor;

extern const KernelDef fill;
extern const KernelDef init_normal;
extern const KernelDef init_uniform;

extern const KernelDef sparse_conv2d;
extern const KernelDef sparse_conv2d_grad_input;
extern const KernelDef sparse_conv2d_grad_weight;
extern const KernelDef init_sparse_pattern;
extern const KernelDef init_sparse;
extern const KernelDef rewire;

inline constexpr std::array kAll{&conv2d,
                                 &conv2d_grad_input,
                                 &conv2d_grad_weight,
                                 &batch_norm_statistics,
                                 &batch_norm_apply,
                                 &batch_norm_running,
                                 &batch_norm_grad_reduce,
                                 &batch_norm_grad_input,
                                 &batch_norm_grad_fixed,
                                 &group_norm,
                                 &group_norm_grad_input,
                                 &group_norm_grad_parameters,
                                 &relu,
                                 &relu_grad,
                                 &relu_grad_bits,
                                 &sign_bits,
                                 &gelu,
                                 &gelu_grad,
                                 &add,
                                 &max_pool,
                                 &max_pool_grad,
                                 &max_pool_argmax,
                                 &max_pool_grad_argmax,
                                 &avg_pool,
                                 &avg_pool_grad,
                                 &global_avg_pool,
                                 &global_avg_pool_grad,
                                 &shortcut,
                                 &shortcut_grad,
                                 &linear,
                                 &linear_grad_input,
                                 &linear_grad_weight,
                                 &pack,
                                 &unpack,
                                 &sum_to_channels,
                                 &dropout,
                                 &reshape,
                                 &relayout,
                                 &copy_to_space,
                                 &softmax_cross_entropy,
                                 &softmax_cross_entropy_grad,
                                 &image_input,
                                 &sgd,
                                 &sgd_quantised,
                                 &adamw,
                                 &count_update,
                                 &momentum_add,
                                 &momentum_decay,
                                 &momentum_step,
                                 &sum_of_squares,
                                 &clip_factor,
                                 &finite_factor,
                                 &fill,
                                 &init_normal,
                                 &init_uniform,
                                 &sparse_conv2d,
                                 &sparse_conv2d_grad_input,
                                 &sparse_conv2d_grad_weight,
                                 &init_sparse_pattern,
                                 &init_sparse,
                                 &rewire};

}  // namespace snug::backends::reference
