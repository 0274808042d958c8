#include "ir/op.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ir/builder.h"

namespace snug {

bool accumulates(const Attributes& attributes) { return attributes.integer_or(kAccumulate, 0) != 0; }

namespace {

// The text form has no infinities and no NaNs, and no op needs them.
void require_finite(const Attributes& attributes) {
  const auto is_finite = [](double value) { return std::isfinite(value); };
  for (const auto& [name, value] : attributes.entries()) {
    const auto* real = std::get_if<double>(&value);
    const auto* reals = std::get_if<std::vector<double>>(&value);
    const bool finite =
        (real == nullptr || is_finite(*real)) && (reals == nullptr || std::all_of(reals->begin(), reals->end(), is_finite));
    if (!finite) throw_user_error("attribute '{}' is not finite", name);
  }
}

}  // namespace

std::vector<Type> infer_types(const OpDef& op, const OpCall& call) {
  try {
    require_finite(call.attributes);
    if (!accumulates(call.attributes)) return op.infer(call);
    if (!op.may_accumulate) throw UserError("this op cannot add to a value; remove the attribute 'accumulate'");
    if (call.inputs.empty()) throw UserError("the value to add to is missing");
    std::vector<Type> types = op.infer({call.inputs.first(call.inputs.size() - 1), call.attributes});
    const Type& sum = call.inputs.back();
    if (sum.shape != types[0].shape || sum.dtype != types[0].dtype) {
      throw_user_error("the value to add to is {} but the result is {}", to_string(sum), to_string(types[0]));
    }
    return types;
  } catch (const UserError& error) {
    throw_user_error("{}: {}", op.name, error.what());
  }
}

bool promises_in_place(const Node& node, std::size_t output, std::size_t input) {
  if (accumulates(node.attributes) && output == 0 && input + 1 == node.inputs.size()) return true;
  for (const InPlacePromise& promise : node.op->in_place) {
    if (promise.output == output && promise.input == input) return true;
  }
  return false;
}

std::int64_t count_flops(const Section& section, const Node& node) {
  if (node.op->flops == nullptr) return 0;
  return node.op->flops(types_of(section, node), node.attributes);
}

GradientContext::GradientContext(SectionBuilder& builder, const Node& forward, const GradientRecipe& recipe,
                                 std::vector<ValueId> output_gradients, std::vector<bool> wanted, ValueId extra)
    : builder_(builder),
      forward_(forward),
      recipe_(recipe),
      output_gradients_(std::move(output_gradients)),
      wanted_(std::move(wanted)),
      extra_(extra),
      gradients_(forward.inputs.size()),
      made_outputs_(forward.outputs.size()) {}

ValueId GradientContext::input(std::size_t i) const {
  const ValueId id = forward_.inputs.at(i);
  SNUG_CHECK(builder_.value(id).is_state() || ((recipe_.keeps_inputs >> i) & 1U) != 0,
             "recipe '{}' of {} reads input {} which it does not keep", recipe_.name, forward_.op->name, i);
  return id;
}

ValueId GradientContext::output(std::size_t i) const {
  SNUG_CHECK(((recipe_.keeps_outputs >> i) & 1U) != 0, "recipe '{}' of {} reads output {} which it does not keep", recipe_.name,
             forward_.op->name, i);
  return forward_.outputs.at(i);
}

ValueId GradientContext::extra() const {
  SNUG_CHECK(extra_.valid(), "recipe '{}' of {} reads an extra value which it does not make", recipe_.name, forward_.op->name);
  return extra_;
}

const Type& GradientContext::input_type(std::size_t i) const { return builder_.value(forward_.inputs.at(i)).type; }

ValueId GradientContext::output_gradient(std::size_t i) const {
  const ValueId id = output_gradients_.at(i);
  SNUG_CHECK(id.valid(), "output {} of {} has no gradient", i, forward_.op->name);
  return id;
}

void GradientContext::set_output(std::size_t i, ValueId value) {
  SNUG_CHECK(recipe_.makes_outputs, "recipe '{}' of {} makes output {}, which it does not declare", recipe_.name,
             forward_.op->name, i);
  made_outputs_.at(i) = value;
}

std::vector<ValueId> GradientContext::emit_all(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes) {
  return builder_.emit(
      op, std::move(inputs), std::move(attributes),
      {.name = "d." + forward_.layer, .layer = forward_.layer, .role = Role::activation_gradient, .phase = Phase::backward});
}

ValueId GradientContext::emit(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes) {
  return emit_all(op, std::move(inputs), std::move(attributes)).front();
}

}  // namespace snug
