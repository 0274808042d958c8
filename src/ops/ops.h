// Every op by name. An op's own file in this folder says everything about it; list.cpp is the one list of them all.
#pragma once

#include <span>
#include <string_view>

#include "ir/op.h"

namespace snug::ops {

extern const OpDef conv2d;
extern const OpDef conv2d_grad_input;
extern const OpDef conv2d_grad_weight;

extern const OpDef batch_norm_statistics;
extern const OpDef batch_norm_apply;
extern const OpDef batch_norm_running;
extern const OpDef batch_norm_grad_reduce;
extern const OpDef batch_norm_grad_input;
extern const OpDef batch_norm_grad_fixed;

extern const OpDef group_norm;
extern const OpDef group_norm_grad_input;
extern const OpDef group_norm_grad_parameters;

extern const OpDef relu;
extern const OpDef relu_grad;
extern const OpDef relu_grad_bits;
extern const OpDef sign_bits;

extern const OpDef gelu;
extern const OpDef gelu_grad;

extern const OpDef add;

extern const OpDef max_pool;
extern const OpDef max_pool_grad;
extern const OpDef max_pool_argmax;
extern const OpDef max_pool_grad_argmax;

extern const OpDef avg_pool;
extern const OpDef avg_pool_grad;
extern const OpDef global_avg_pool;
extern const OpDef global_avg_pool_grad;

extern const OpDef shortcut;
extern const OpDef shortcut_grad;

extern const OpDef linear;
extern const OpDef linear_grad_input;
extern const OpDef linear_grad_weight;

extern const OpDef pack;
extern const OpDef unpack;

extern const OpDef sum_to_channels;
extern const OpDef dropout;
extern const OpDef reshape;
extern const OpDef relayout;
extern const OpDef copy_to_space;

extern const OpDef softmax_cross_entropy;
extern const OpDef softmax_cross_entropy_grad;

extern const OpDef image_input;
extern const OpDef sgd;
extern const OpDef sgd_quantised;
extern const OpDef adamw;
extern const OpDef count_update;
extern const OpDef momentum_add;
extern const OpDef momentum_decay;
extern const OpDef momentum_step;
extern const OpDef sum_of_squares;
extern const OpDef clip_factor;
extern const OpDef finite_factor;

extern const OpDef fill;
extern const OpDef init_normal;
extern const OpDef init_uniform;

extern const OpDef sparse_conv2d;
extern const OpDef sparse_conv2d_grad_input;
extern const OpDef sparse_conv2d_grad_weight;
extern const OpDef init_sparse_pattern;
extern const OpDef init_sparse;
extern const OpDef rewire;

std::span<const OpDef* const> all();

// The op of that name, or nullptr. The default OpLookup.
const OpDef* find(std::string_view name);

}  // namespace snug::ops
