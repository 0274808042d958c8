// What a node of AdamW is bound to, for moments of any type.
#pragma once

#include "backends/cuda/call.h"
#include "backends/cuda/updates/adamw.h"
#include "ops/updates/sgd.h"

namespace snug::backends::cuda {

// The inputs from `updates` on are the count of updates and perhaps the gradient norm.
template <typename T, typename M>
launch::AdamwOperands<T, M> adamw_operands(const Call& call, std::size_t updates) {
  return {.weight = call.in<T>(0),
          .gradient = call.in<T>(1),
          .first = call.in<M>(3),
          .second = call.in<M>(4),
          .new_weight = call.out<T>(0),
          .cleared_gradient = call.out<T>(1),
          .new_first = call.out<M>(2),
          .new_second = call.out<M>(3),
          .scalars = call.scalars(2),
          .updates = call.in<double>(updates),
          .norm = call.input_count() > updates + 1 ? call.in<GradientNorm>(updates + 1) : nullptr};
}

inline launch::AdamwConstants adamw_constants(const Attributes& attributes) {
  return {.first_decay = attributes.real("beta1"),
          .second_decay = attributes.real("beta2"),
          .epsilon = attributes.real("epsilon"),
          .weight_decay = attributes.real("weight_decay"),
          .stochastic = ops::sgd_rounds_stochastically(attributes),
          .key = static_cast<std::uint64_t>(attributes.integer_or("key", 0))};
}

}  // namespace snug::backends::cuda
