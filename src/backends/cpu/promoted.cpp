#include "backends/cpu/promoted.h"

#include <algorithm>
#include <array>

#include "backends/cpu/onednn.h"
#include "backends/cpu/simd.h"
#include "backends/cpu/storage.h"
#include "backends/reference/kernels.h"

namespace snug::backends::cpu {

namespace {

bool is_half(const Type& type) { return is_dense_real(type) && bits_per_element(type.dtype) == 16; }

std::vector<Type> with_floats(std::span<const Type> types) {
  std::vector<Type> result(types.begin(), types.end());
  for (Type& type : result) {
    if (is_half(type)) type = as_floats(type);
  }
  return result;
}

template <const KernelDef& Original>
KernelMatch match_promoted(const KernelQuery& query) {
  const auto any_half = [](std::span<const Type> types) { return std::ranges::any_of(types, is_half); };
  if (!any_half(query.inputs) && !any_half(query.outputs)) return Refuse{"nothing here has 16 bits"};
  if (accumulates(query.attributes)) return Refuse{"the result would not be rounded before it is added to a sum"};
  if (query.attributes.integer_or("stochastic", 0) != 0) return Refuse{"it rounds to nearest alone"};
  const std::vector<Type> inputs = with_floats(query.inputs);
  const std::vector<Type> outputs = with_floats(query.outputs);
  KernelQuery promoted = query;
  promoted.inputs = inputs;
  promoted.outputs = outputs;
  KernelMatch match = Original.match(promoted);
  if (std::holds_alternative<Refuse>(match)) return match;
  WorkspaceCutter cutter;
  for (const auto& [types, floats] : {std::pair(query.inputs, &inputs), std::pair(query.outputs, &outputs)}) {
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (is_half(types[i])) cutter.cut((*floats)[i].bytes());
    }
  }
  const Accept& original = std::get<Accept>(match);
  cutter.cut(original.workspace);
  return Accept{.workspace = cutter.used(), .is_reference = original.is_reference};
}

template <const KernelDef& Original>
std::unique_ptr<BoundKernel> bind_promoted(const KernelArguments& arguments) {
  WorkspaceCutter cutter(arguments.workspace.data());
  auto chain = std::make_unique<PrimitiveChain>();
  const auto promoted = [&](const Operand& operand) -> Operand {
    if (!is_half(operand.type)) return operand;
    const Type type = as_floats(operand.type);
    return {.type = type, .data = cutter.cut(type.bytes())};
  };
  std::vector<Operand> inputs, outputs;
  for (const Operand& input : arguments.inputs) {
    inputs.push_back(promoted(input));
    if (is_half(input.type)) {
      chain->add_action(
          widen_elements(input.type.dtype, input.data, floats(inputs.back()), stored_elements(input.type), arguments.threads));
    }
  }
  for (const Operand& output : arguments.outputs) outputs.push_back(promoted(output));
  KernelArguments call = arguments;
  call.inputs = inputs;
  call.outputs = outputs;
  call.workspace = arguments.workspace.subspan(static_cast<std::size_t>(cutter.used().count()));
  chain->add_action(Original.bind(call));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Operand& output = arguments.outputs[i];
    if (is_half(output.type)) {
      chain->add_action(
          narrow_elements(output.type.dtype, floats(outputs[i]), output.data, stored_elements(output.type), arguments.threads));
    }
  }
  return chain;
}

template <const KernelDef& Original>
constexpr KernelDef promoted(std::string_view name) {
  constexpr std::string_view kPrefix = "promoted_";
  return {.name = name, .op = name.substr(kPrefix.size()), .match = match_promoted<Original>, .bind = bind_promoted<Original>};
}

constinit const KernelDef kKernels[] = {
    promoted<onednn_avg_pool>("promoted_avg_pool"),
    promoted<onednn_avg_pool_grad>("promoted_avg_pool_grad"),
    promoted<reference::global_avg_pool>("promoted_global_avg_pool"),
    promoted<reference::global_avg_pool_grad>("promoted_global_avg_pool_grad"),
    promoted<reference::conv2d>("promoted_conv2d"),
    promoted<reference::conv2d_grad_input>("promoted_conv2d_grad_input"),
    promoted<reference::conv2d_grad_weight>("promoted_conv2d_grad_weight"),
    promoted<reference::batch_norm_statistics>("promoted_batch_norm_statistics"),
    promoted<reference::batch_norm_apply>("promoted_batch_norm_apply"),
    promoted<reference::batch_norm_grad_reduce>("promoted_batch_norm_grad_reduce"),
    promoted<reference::batch_norm_grad_input>("promoted_batch_norm_grad_input"),
    promoted<reference::batch_norm_grad_fixed>("promoted_batch_norm_grad_fixed"),
    promoted<reference::group_norm>("promoted_group_norm"),
    promoted<reference::group_norm_grad_input>("promoted_group_norm_grad_input"),
    promoted<reference::group_norm_grad_parameters>("promoted_group_norm_grad_parameters"),
    promoted<reference::relu>("promoted_relu"),
    promoted<reference::relu_grad>("promoted_relu_grad"),
    promoted<reference::relu_grad_bits>("promoted_relu_grad_bits"),
    promoted<reference::sign_bits>("promoted_sign_bits"),
    promoted<reference::add>("promoted_add"),
    promoted<reference::max_pool>("promoted_max_pool"),
    promoted<reference::max_pool_grad>("promoted_max_pool_grad"),
    promoted<reference::max_pool_argmax>("promoted_max_pool_argmax"),
    promoted<reference::max_pool_grad_argmax>("promoted_max_pool_grad_argmax"),
    promoted<reference::shortcut>("promoted_shortcut"),
    promoted<reference::shortcut_grad>("promoted_shortcut_grad"),
    promoted<reference::sum_to_channels>("promoted_sum_to_channels"),
    promoted<reference::dropout>("promoted_dropout"),
    promoted<reference::softmax_cross_entropy>("promoted_softmax_cross_entropy"),
    promoted<reference::softmax_cross_entropy_grad>("promoted_softmax_cross_entropy_grad"),
    promoted<reference::image_input>("promoted_image_input"),
    promoted<reference::sgd>("promoted_sgd"),
    promoted<reference::sum_of_squares>("promoted_sum_of_squares"),
};

constexpr std::size_t kCount = std::size(kKernels);

constinit const auto kPointers = [] {
  std::array<const KernelDef*, kCount> pointers{};
  for (std::size_t i = 0; i < kCount; ++i) pointers[i] = &kKernels[i];
  return pointers;
}();

}  // namespace

std::span<const KernelDef* const> promoted_kernels() { return kPointers; }

}  // namespace snug::backends::cpu
