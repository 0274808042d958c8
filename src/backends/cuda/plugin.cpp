// The plugin's door: what load_cuda_backend() finds, and the one table of kernels.

#include "backends/cuda/device.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda_plugin_abi.h"

namespace snug::backends {

namespace {

// In order of preference: for products, what is made for the case, then the library's, then the plain ones.
Backend cuda_backend(const CudaOptions& options) {
  return {.name = "cuda",
          .kernels = {&cuda::gemm_conv2d,
                      &cuda::gemm_conv2d_grad_input,
                      &cuda::gemm_conv2d_grad_weight,
                      &cuda::cudnn_conv2d,
                      &cuda::cudnn_conv2d_grad_input,
                      &cuda::cudnn_conv2d_grad_weight,
                      &cuda::conv2d,
                      &cuda::conv2d_grad_input,
                      &cuda::conv2d_grad_weight,
                      &cuda::gemm_sparse_conv2d,
                      &cuda::gemm_sparse_conv2d_grad_input,
                      &cuda::gemm_sparse_conv2d_grad_weight,
                      &cuda::cudnn_sparse_conv2d,
                      &cuda::cudnn_sparse_conv2d_grad_input,
                      &cuda::cudnn_sparse_conv2d_grad_weight,
                      &cuda::direct_sparse_conv2d,
                      &cuda::direct_sparse_conv2d_grad_input,
                      &cuda::direct_sparse_conv2d_grad_weight,
                      &cuda::cublaslt_linear,
                      &cuda::cublaslt_linear_grad_input,
                      &cuda::cublaslt_linear_grad_weight,
                      &cuda::linear,
                      &cuda::linear_grad_input,
                      &cuda::linear_grad_weight,
                      &cuda::batch_norm_statistics,
                      &cuda::batch_norm_apply,
                      &cuda::batch_norm_running,
                      &cuda::batch_norm_grad_reduce,
                      &cuda::batch_norm_grad_input,
                      &cuda::batch_norm_grad_fixed,
                      &cuda::group_norm,
                      &cuda::group_norm_grad_input,
                      &cuda::group_norm_grad_parameters,
                      &cuda::relu,
                      &cuda::relu_grad,
                      &cuda::relu_grad_bits,
                      &cuda::sign_bits,
                      &cuda::add,
                      &cuda::add_metrics,
                      &cuda::max_pool,
                      &cuda::max_pool_grad,
                      &cuda::max_pool_argmax,
                      &cuda::max_pool_grad_argmax,
                      &cuda::avg_pool,
                      &cuda::avg_pool_grad,
                      &cuda::global_avg_pool,
                      &cuda::global_avg_pool_grad,
                      &cuda::shortcut,
                      &cuda::shortcut_grad,
                      &cuda::sum_to_channels,
                      &cuda::dropout,
                      &cuda::reshape,
                      &cuda::relayout,
                      &cuda::copy_to_space,
                      &cuda::softmax_cross_entropy,
                      &cuda::softmax_cross_entropy_grad,
                      &cuda::image_input,
                      &cuda::sgd,
                      &cuda::clipped_sgd,
                      &cuda::clipped_sgd_with_momentum,
                      &cuda::sum_of_squares,
                      &cuda::clip_factor,
                      &cuda::finite_factor,
                      &cuda::fill,
                      &cuda::fill_metrics,
                      &cuda::init_normal,
                      &cuda::init_uniform,
                      &cuda::init_sparse_pattern,
                      &cuda::init_sparse,
                      &cuda::rewire},
          .threads = 1,
          .device = std::make_shared<cuda::CudaDevice>(options),
          .machine = cuda::machine(options.device)};
}

}  // namespace

}  // namespace snug::backends

extern "C" {

const char* snug_cuda_fingerprint() {
  static const std::string fingerprint = snug::backends::cuda_plugin_fingerprint();
  return fingerprint.c_str();
}

void snug_cuda_open(const snug::backends::CudaOptions& options, snug::Backend& result) {
  result = snug::backends::cuda_backend(options);
}

}  // extern "C"

// Both have the types that the loader expects.
static_assert(std::is_same_v<decltype(&snug_cuda_fingerprint), snug::backends::CudaFingerprintFunction>);
static_assert(std::is_same_v<decltype(&snug_cuda_open), snug::backends::CudaOpenFunction>);
