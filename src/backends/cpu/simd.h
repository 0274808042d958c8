// The CPU backend's own kernels, for what oneDNN does not do or would do with one pass over memory more.
#pragma once

#include <cstdint>
#include <memory>

#include "ir/kernel.h"

namespace snug::backends::cpu {

extern const KernelDef simd_add;
extern const KernelDef simd_relu;
extern const KernelDef simd_relu_grad;
extern const KernelDef simd_sgd;
extern const KernelDef simd_clipped_sgd;
extern const KernelDef simd_sgd_quantised;
extern const KernelDef simd_adamw;
extern const KernelDef simd_momentum_add;
extern const KernelDef simd_momentum_decay;
extern const KernelDef simd_momentum_step;
extern const KernelDef simd_sum_of_squares;

extern const KernelDef simd_batch_norm_statistics;
extern const KernelDef simd_batch_norm_apply;
extern const KernelDef simd_batch_norm_grad_reduce;
extern const KernelDef simd_batch_norm_grad_input;

extern const KernelDef simd_shortcut;
extern const KernelDef simd_shortcut_grad;

extern const KernelDef simd_max_pool;
extern const KernelDef simd_max_pool_argmax;
extern const KernelDef simd_max_pool_grad_argmax;

extern const KernelDef simd_sign_bits;
extern const KernelDef simd_relu_grad_bits;
extern const KernelDef simd_dropout;
extern const KernelDef simd_sum_to_channels;
extern const KernelDef simd_pack;
extern const KernelDef simd_unpack;
extern const KernelDef table_image_input;

extern const KernelDef onednn_avg_pool;
extern const KernelDef onednn_avg_pool_grad;
extern const KernelDef onednn_global_avg_pool;
extern const KernelDef onednn_global_avg_pool_grad;
extern const KernelDef half_global_avg_pool;
extern const KernelDef half_global_avg_pool_grad;
extern const KernelDef onednn_relayout;
extern const KernelDef half_relayout;
extern const KernelDef half_reshape;

extern const KernelDef simd_fill;
extern const KernelDef onednn_init_normal;
extern const KernelDef onednn_init_uniform;
extern const KernelDef half_init_normal;
extern const KernelDef half_init_uniform;

extern const KernelDef onednn_linear;
extern const KernelDef onednn_linear_grad_input;
extern const KernelDef onednn_linear_grad_weight;
extern const KernelDef onednn_linear_grad_weight_few_rows;
extern const KernelDef half_linear;
extern const KernelDef half_linear_grad_input;
extern const KernelDef half_linear_grad_weight;

// Pieces of other kernels, on all threads: out = a + b; to = from as floats, or back, rounded; out = sum + fresh, with the fresh
// floats rounded before they are added; and a plain copy.
std::unique_ptr<BoundKernel> add_elements(DType dtype, const std::byte* a, const std::byte* b, std::byte* out, std::int64_t count,
                                          int threads);
std::unique_ptr<BoundKernel> widen_elements(DType dtype, const std::byte* from, float* to, std::int64_t count, int threads);
std::unique_ptr<BoundKernel> narrow_elements(DType dtype, const float* from, std::byte* to, std::int64_t count, int threads);
std::unique_ptr<BoundKernel> add_floats(DType dtype, const std::byte* sum, const float* fresh, std::byte* out, std::int64_t count,
                                        int threads);
std::unique_ptr<BoundKernel> copy_bytes(const std::byte* source, std::byte* target, Bytes size);

}  // namespace snug::backends::cpu
