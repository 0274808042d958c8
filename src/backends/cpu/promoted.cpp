#include "backends/cpu/promoted.h"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/kernels.h"
#include "backends/cpu/onednn/onednn.h"
#include "backends/cpu/pieces.h"
#include "backends/cpu/storage.h"
#include "backends/reference/kernels.h"

namespace snug::backends::cpu {

namespace {

std::vector<Type> with_floats(std::span<const Type> types) {
  std::vector<Type> result(types.begin(), types.end());
  for (Type& type : result) {
    if (is_16_bits(type)) type = as_floats(type);
  }
  return result;
}

template <const KernelDef& Original>
KernelMatch match_promoted(const KernelQuery& query) {
  const auto any_of_16_bits = [](std::span<const Type> types) { return std::ranges::any_of(types, is_16_bits); };
  if (!any_of_16_bits(query.inputs) && !any_of_16_bits(query.outputs)) return Refuse{"nothing here has 16 bits"};
  if (std::holds_alternative<Accept>(Original.match(query))) return Refuse{"the plain kernel takes 16 bits as they are"};
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
      if (is_16_bits(types[i])) cutter.cut((*floats)[i].bytes());
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
    if (!is_16_bits(operand.type)) return operand;
    const Type type = as_floats(operand.type);
    return {.type = type, .data = cutter.cut(type.bytes())};
  };
  std::vector<Operand> inputs, outputs;
  for (const Operand& input : arguments.inputs) {
    inputs.push_back(promoted(input));
    if (is_16_bits(input.type)) {
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
    if (is_16_bits(output.type)) {
      chain->add_action(
          narrow_elements(output.type.dtype, floats(outputs[i]), output.data, stored_elements(output.type), arguments.threads));
    }
  }
  return chain;
}

template <const KernelDef& Original>
KernelDef promoted(std::string_view name) {
  return {.name = name, .op = Original.op, .match = match_promoted<Original>, .bind = bind_promoted<Original>};
}

// One for every op, made from the reference's kernel unless there is a faster one for floats alone.
class Promoted {
 public:
  Promoted() {
    add<onednn_avg_pool>();
    add<onednn_avg_pool_grad>();
    add_each(std::make_index_sequence<reference::kAll.size()>());
  }
  std::span<const KernelDef* const> kernels() const { return kernels_; }

 private:
  template <std::size_t... I>
  void add_each(std::index_sequence<I...> /*all*/) {
    (add<*reference::kAll[I]>(), ...);
  }

  template <const KernelDef& Original>
  void add() {
    for (const KernelDef& kernel : made_) {
      if (kernel.op == Original.op) return;
    }
    names_.push_back("promoted_" + std::string(Original.op));
    made_.push_back(promoted<Original>(names_.back()));
    kernels_.push_back(&made_.back());
  }

  // Kernels point to their names and backends to their kernels: neither may move in memory.
  std::deque<std::string> names_;
  std::deque<KernelDef> made_;
  std::vector<const KernelDef*> kernels_;
};

}  // namespace

std::span<const KernelDef* const> promoted_kernels() {
  static const Promoted all;
  return all.kernels();
}

}  // namespace snug::backends::cpu
