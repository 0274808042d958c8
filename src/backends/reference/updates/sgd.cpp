#include "ops/updates/sgd.h"

#include <cmath>

#include "backends/reference/call.h"
#include "backends/reference/kernels.h"

namespace snug::backends::reference {

namespace {

// PyTorch's rule, computed in T as PyTorch does. Every output is written, also when it is not in place.
template <typename T>
void run_sgd(const Call& call) {
  const bool has_momentum = ops::sgd_has_momentum(call.attributes);
  const auto weight = call.elementwise<T>(0);
  const auto gradient = call.elementwise<T>(1);
  const auto old_momentum = call.elementwise<T>(has_momentum ? 3 : 0);  // not read when there is none
  const Result<T> new_weight = call.result<T>();
  const Operand& cleared = call.outputs[1];
  const Operand& new_momentum = call.outputs[has_momentum ? 2 : 0];
  const PositionMap to_cleared(call.outputs[0].type, cleared.type);
  const PositionMap to_momentum(call.outputs[0].type, new_momentum.type);

  const Scalars scalars = call.scalars(2);
  const bool clips = ops::sgd_clips(call.attributes, call.inputs.size());
  GradientNorm norm;
  if (clips) std::memcpy(&norm, call.inputs.back().data, sizeof norm);
  const bool skip = scalars.skip_update != 0 || !std::isfinite(norm.factor);
  const T factor = static_cast<T>(norm.factor);
  const T learning_rate = static_cast<T>(scalars.learning_rate);
  const T loss_scale = static_cast<T>(scalars.loss_scale);
  const T momentum = static_cast<T>(call.attributes.real("momentum"));
  const T weight_decay = static_cast<T>(call.attributes.real("weight_decay"));
  const bool nesterov = call.attributes.integer("nesterov") != 0;
  parallel_for(call, new_weight.elements(), [&](std::int64_t i) {
    const T w = weight[i];
    T g = gradient[i] + T{0};  // -0 becomes +0, as in a sum
    T m = has_momentum ? old_momentum[i] : T{0};
    T moved = w;
    if (!skip) {
      if (loss_scale != 1) g /= loss_scale;
      if (clips) g *= factor;
      if (weight_decay != 0) g += weight_decay * w;
      if (has_momentum) {
        m = momentum * m + g;
        g = nesterov ? g + momentum * m : m;
      }
      moved -= learning_rate * g;
    }
    new_weight.set(i, moved);
    reinterpret_cast<T*>(cleared.data)[to_cleared(i)] = T{0};
    if (has_momentum) reinterpret_cast<T*>(new_momentum.data)[to_momentum(i)] = m;
  });
}

constexpr Signature kPlain{.inputs = {Element::real, Element::real, Element::scalars, Element::real}};
constexpr Signature kClipped{.inputs = {Element::real, Element::real, Element::scalars, Element::metrics}};
constexpr Signature kClippedWithMomentum{
    .inputs = {Element::real, Element::real, Element::scalars, Element::real, Element::metrics}};

const Signature& signature_of(const Attributes& attributes, std::size_t inputs) {
  if (!ops::sgd_clips(attributes, inputs)) return kPlain;
  return ops::sgd_has_momentum(attributes) ? kClippedWithMomentum : kClipped;
}

}  // namespace

constinit const KernelDef sgd{
    .name = "reference_sgd",
    .op = "sgd",
    .match = [](const KernelQuery& query) { return match_operands(signature_of(query.attributes, query.inputs.size()), query); },
    .bind =
        [](const KernelArguments& arguments) {
          const Signature& signature = signature_of(arguments.attributes, arguments.inputs.size());
          return bind_function<[]<typename T>() { return run_sgd<T>; }>(signature, arguments);
        }};

}  // namespace snug::backends::reference
