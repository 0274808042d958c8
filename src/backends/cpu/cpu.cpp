#include "backends/cpu/cpu.h"

#include "backends/cpu/conv2d.h"
#include "backends/cpu/instructions.h"
#include "backends/cpu/machine.h"
#include "backends/cpu/onednn.h"
#include "backends/cpu/promoted.h"
#include "backends/cpu/simd.h"
#include "backends/cpu/sparse_conv2d.h"
#include "backends/host_device.h"
#include "backends/reference/reference.h"

namespace snug::backends {

Backend cpu_backend(int threads) {
  Backend backend{.name = "cpu",
                  .kernels = {&cpu::onednn_conv2d,
                              &cpu::onednn_conv2d_grad_input,
                              &cpu::onednn_conv2d_grad_input_quarters,
                              &cpu::onednn_conv2d_grad_input_blocks,
                              &cpu::pairs_conv2d_grad_weight,
                              &cpu::onednn_conv2d_grad_weight,
                              &cpu::onednn_conv2d_grad_weight_quarters,
                              &cpu::onednn_conv2d_grad_weight_blocks,
                              &cpu::onednn_conv2d_grad_weight_one_thread,
                              &cpu::onednn_sparse_conv2d,
                              &cpu::half_sparse_conv2d,
                              &cpu::direct_sparse_conv2d,
                              &cpu::onednn_sparse_conv2d_grad_input,
                              &cpu::half_sparse_conv2d_grad_input,
                              &cpu::direct_sparse_conv2d_grad_input,
                              &cpu::pairs_sparse_conv2d_grad_weight,
                              &cpu::onednn_sparse_conv2d_grad_weight_stripes,
                              &cpu::onednn_sparse_conv2d_grad_weight_slices,
                              &cpu::onednn_sparse_conv2d_grad_weight,
                              &cpu::half_sparse_conv2d_grad_weight,
                              &cpu::direct_sparse_conv2d_grad_weight,
                              &cpu::half_conv2d,
                              &cpu::half_conv2d_small,
                              &cpu::half_conv2d_least,
                              &cpu::half_conv2d_grad_input,
                              &cpu::half_conv2d_grad_input_small,
                              &cpu::half_conv2d_grad_input_least,
                              &cpu::half_conv2d_grad_weight,
                              &cpu::half_conv2d_grad_weight_small,
                              &cpu::half_conv2d_grad_weight_least,
                              &cpu::half_init_sparse,
                              &cpu::half_rewire,
                              &cpu::onednn_linear,
                              &cpu::onednn_linear_grad_input,
                              &cpu::onednn_linear_grad_weight,
                              &cpu::onednn_linear_grad_weight_few_rows,
                              &cpu::half_linear,
                              &cpu::half_linear_grad_input,
                              &cpu::half_linear_grad_weight,
                              &cpu::simd_batch_norm_statistics,
                              &cpu::simd_batch_norm_apply,
                              &cpu::simd_batch_norm_grad_reduce,
                              &cpu::simd_batch_norm_grad_input,
                              &cpu::simd_add,
                              &cpu::simd_relu,
                              &cpu::simd_relu_grad,
                              &cpu::simd_clipped_sgd,
                              &cpu::simd_sgd_quantised,
                              &cpu::simd_adamw,
                              &cpu::simd_momentum_add,
                              &cpu::simd_momentum_decay,
                              &cpu::simd_momentum_step,
                              &cpu::simd_sgd,
                              &cpu::simd_sum_of_squares,
                              &cpu::simd_shortcut,
                              &cpu::simd_shortcut_grad,
                              &cpu::simd_max_pool,
                              &cpu::simd_max_pool_argmax,
                              &cpu::simd_max_pool_grad_argmax,
                              &cpu::onednn_avg_pool,
                              &cpu::onednn_avg_pool_grad,
                              &cpu::onednn_global_avg_pool,
                              &cpu::onednn_global_avg_pool_grad,
                              &cpu::half_global_avg_pool,
                              &cpu::half_global_avg_pool_grad,
                              &cpu::onednn_relayout,
                              &cpu::half_relayout,
                              &cpu::half_reshape,
                              &cpu::simd_sign_bits,
                              &cpu::simd_relu_grad_bits,
                              &cpu::simd_dropout,
                              &cpu::simd_sum_to_channels,
                              &cpu::simd_pack,
                              &cpu::simd_unpack,
                              &cpu::table_image_input,
                              &cpu::simd_fill,
                              &cpu::onednn_init_normal,
                              &cpu::onednn_init_uniform,
                              &cpu::half_init_normal,
                              &cpu::half_init_uniform},
                  .threads = threads,
                  .device = host_device(threads),
                  .machine = cpu::machine(),
                  .instructions = cpu::name_of(cpu::effective_instructions()),
                  .instructions_limit = cpu::held_instructions().reason,
                  .product_speeds = cpu::product_speeds(cpu::read_processor(), cpu::effective_instructions()),
                  .preferred_weight_layout = cpu::preferred_conv2d_weight_layout,
                  .read_opaque = cpu::read_opaque,
                  .write_opaque = cpu::write_opaque};
  for (const KernelDef* kernel : cpu::promoted_kernels()) backend.kernels.push_back(kernel);
  for (const KernelDef* kernel : reference_backend(threads).kernels) backend.kernels.push_back(kernel);
  return backend;
}

}  // namespace snug::backends
