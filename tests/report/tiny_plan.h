// A network small enough to count by hand: two linear layers, batch 8 in two microbatches, one node with workspace.
#pragma once

#include <string>

#include "ir/text.h"
#include "ops/ops.h"
#include "plan/compile.h"

namespace snug::report {

inline std::string tiny_text() {
  return R"(program tiny batch 8 microbatch 4
state scalars : u8[64] scalar
state metrics : f64[3] scalar
state features : f32[4x8] input
state body.one.fc.weight : f32[16x8] parameter
state body.one.fc.bias : f32[16] parameter trainable
state head.fc.weight : f32[4x16] parameter trainable
state labels : i32[4] input
state head.fc.weight.grad : f32[4x16] gradient
state body.one.fc.bias.grad : f32[16] gradient
state body.one.fc.bias.momentum : f32[16] optimizer
state head.fc.weight.momentum : f32[4x16] optimizer
section micro
  %body.one.fc = linear(features@0, body.one.fc.weight@0, body.one.fc.bias@0) : f32[4x16] activation using fast_linear ; forward body.one.fc
  %body.one.relu = relu(%body.one.fc) : f32[4x16] activation in %body.one.fc using plain_relu ; forward body.one.relu
  %head.fc = linear(%body.one.relu, head.fc.weight@0) : f32[4x4] activation using plain_linear ; forward head.fc
  %loss = softmax_cross_entropy(%head.fc, labels@0, scalars@0) {label_smoothing=0.0} : f64[3] activation using plain_loss ; forward loss
  metrics@1 = add(metrics@0, %loss) : state using plain_add ; forward loss
  %d.loss = softmax_cross_entropy_grad(%head.fc, labels@0, scalars@0) {label_smoothing=0.0} : f32[4x4] activation_gradient in %head.fc using plain_loss_grad ; backward loss
  head.fc.weight.grad@1 = linear_grad_weight(%d.loss, %body.one.relu, head.fc.weight.grad@0) {accumulate=1} : state using plain_grad_weight workspace %ws u8[1000] ; backward head.fc
  %d.head.fc = linear_grad_input(%d.loss, head.fc.weight@0) : f32[4x16] activation_gradient using plain_grad_input ; backward head.fc
  %d.body.one.relu = relu_grad(%d.head.fc, %body.one.relu) : f32[4x16] activation_gradient in %d.head.fc using plain_relu_grad ; backward body.one.relu
  body.one.fc.bias.grad@1 = sum_to_channels(%d.body.one.relu, body.one.fc.bias.grad@0) {accumulate=1} : state using plain_sum ; backward body.one.fc
section update
  body.one.fc.bias@1, body.one.fc.bias.grad@1, body.one.fc.bias.momentum@1 = sgd(body.one.fc.bias@0, body.one.fc.bias.grad@0, scalars@0, body.one.fc.bias.momentum@0) {momentum=0.9, nesterov=1, weight_decay=0.0005} : state, state, state using plain_sgd ; update body.one.fc.bias
  head.fc.weight@1, head.fc.weight.grad@1, head.fc.weight.momentum@1 = sgd(head.fc.weight@0, head.fc.weight.grad@0, scalars@0, head.fc.weight.momentum@0) {momentum=0.9, nesterov=1, weight_decay=0.0005} : state, state, state using plain_sgd ; update head.fc.weight
)";
}

inline Plan plan_of(const std::string& text) {
  Plan plan = place(parse_program(text, ops::find));
  plan.methods = complete({}, plan.program);
  return plan;
}
inline Plan tiny_plan() { return plan_of(tiny_text()); }

// `text` with every `from` replaced.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

}  // namespace snug::report
