#include "backends/reference/call.h"
#include "backends/reference/kernels.h"

namespace snug::backends::reference {

namespace {

// PyTorch's rule, computed in T as PyTorch does. Every output is written, also when it is not in place.
template <typename T>
void run_sgd(const Call& call) {
  const bool has_momentum = call.inputs.size() == 4;
  const auto weight = call.elementwise<T>(0);
  const auto gradient = call.elementwise<T>(1);
  const auto old_momentum = call.elementwise<T>(has_momentum ? 3 : 0);  // not read when there is none
  const Result<T> new_weight = call.result<T>();
  const Operand& cleared = call.outputs[1];
  const Operand& new_momentum = call.outputs[has_momentum ? 2 : 0];
  const PositionMap to_cleared(call.outputs[0].type, cleared.type);
  const PositionMap to_momentum(call.outputs[0].type, new_momentum.type);

  const Scalars scalars = call.scalars(2);
  const bool skip = scalars.skip_update != 0;
  const T learning_rate = static_cast<T>(scalars.learning_rate);
  const T loss_scale = static_cast<T>(scalars.loss_scale);
  const T momentum = static_cast<T>(call.attributes.real("momentum"));
  const T weight_decay = static_cast<T>(call.attributes.real("weight_decay"));
  const bool nesterov = call.attributes.integer("nesterov") != 0;
  parallel_for(call, new_weight.elements(), [&](std::int64_t i) {
    const T w = weight[i];
    T g = gradient[i];
    T m = has_momentum ? old_momentum[i] : T{0};
    T moved = w;
    if (!skip) {
      if (loss_scale != 1) g /= loss_scale;
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

constexpr Signature kSignature{.inputs = {Element::real, Element::real, Element::scalars, Element::real}};

}  // namespace

constinit const KernelDef sgd = define<run_sgd<float>, run_sgd<double>, kSignature>("reference_sgd");

}  // namespace snug::backends::reference
