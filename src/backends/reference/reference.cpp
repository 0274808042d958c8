#include "backends/reference/reference.h"

#include "backends/host_device.h"
#include "backends/reference/kernels.h"
#include "base/error.h"

namespace snug::backends {

Backend reference_backend(int threads) {
  SNUG_CHECK(threads >= 1, "a backend of {} threads was asked for", threads);
  return {.name = "reference",
          .kernels = {&reference::conv2d,
                      &reference::conv2d_grad_input,
                      &reference::conv2d_grad_weight,
                      &reference::batch_norm_statistics,
                      &reference::batch_norm_apply,
                      &reference::batch_norm_running,
                      &reference::batch_norm_grad_reduce,
                      &reference::batch_norm_grad_input,
                      &reference::batch_norm_grad_fixed,
                      &reference::group_norm,
                      &reference::group_norm_grad_input,
                      &reference::group_norm_grad_parameters,
                      &reference::relu,
                      &reference::relu_grad,
                      &reference::relu_grad_bits,
                      &reference::sign_bits,
                      &reference::add,
                      &reference::max_pool,
                      &reference::max_pool_grad,
                      &reference::max_pool_argmax,
                      &reference::max_pool_grad_argmax,
                      &reference::avg_pool,
                      &reference::avg_pool_grad,
                      &reference::global_avg_pool,
                      &reference::global_avg_pool_grad,
                      &reference::shortcut,
                      &reference::shortcut_grad,
                      &reference::linear,
                      &reference::linear_grad_input,
                      &reference::linear_grad_weight,
                      &reference::pack,
                      &reference::unpack,
                      &reference::sum_to_channels,
                      &reference::dropout,
                      &reference::reshape,
                      &reference::relayout,
                      &reference::copy_to_space,
                      &reference::softmax_cross_entropy,
                      &reference::softmax_cross_entropy_grad,
                      &reference::image_input,
                      &reference::sgd,
                      &reference::sgd_quantised,
                      &reference::momentum_add,
                      &reference::momentum_decay,
                      &reference::momentum_step,
                      &reference::sum_of_squares,
                      &reference::clip_factor,
                      &reference::finite_factor,
                      &reference::fill,
                      &reference::init_normal,
                      &reference::init_uniform,
                      &reference::sparse_conv2d,
                      &reference::sparse_conv2d_grad_input,
                      &reference::sparse_conv2d_grad_weight,
                      &reference::init_sparse_pattern,
                      &reference::init_sparse,
                      &reference::rewire},
          .threads = threads,
          .device = host_device(threads)};
}

}  // namespace snug::backends
