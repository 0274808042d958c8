#include <array>

#include "ops/ops.h"

namespace snug::ops {

namespace {

// A list, not a registry by static initialisation: linkers drop those, and here one can read what there is.
constexpr std::array kAll{&conv2d,
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

}  // namespace

std::span<const OpDef* const> all() { return kAll; }

const OpDef* find(std::string_view name) {
  for (const OpDef* op : kAll) {
    if (op->name == name) return op;
  }
  return nullptr;
}

}  // namespace snug::ops
