#include "backends/reference/updates/adamw.h"

#include "backends/reference/kernels.h"

namespace snug::backends::reference {

namespace {

// Computed in T, one rounding per operation. Every output is written, also when it is not in place.
template <typename T>
void run_adamw(const Call& call) {
  const auto weight = call.elementwise<T>(0);
  const auto gradient = call.elementwise<T>(1);
  const auto old_first = call.elementwise<T>(3);
  const auto old_second = call.elementwise<T>(4);
  const Result<T> new_weight = call.result<T>();
  const PositionMap to_gradient(call.outputs[0].type, call.outputs[1].type);
  const PositionMap to_first(call.outputs[0].type, call.outputs[2].type);
  const PositionMap to_second(call.outputs[0].type, call.outputs[3].type);
  const auto out = [&](std::size_t output) { return reinterpret_cast<T*>(call.outputs[output].data); };

  const bool skip = skips_update(call, 2, 6);
  const AdamwRule<T> rule(call, 5, 6);
  parallel_for(call, new_weight.elements(), [&](std::int64_t i) {
    T w = weight[i];
    T m = old_first[i];
    T v = old_second[i];
    if (!skip) w = rule.step(w, gradient[i], m, v);
    new_weight.set(i, w);
    out(1)[to_gradient(i)] = T{0};
    out(2)[to_first(i)] = m;
    out(3)[to_second(i)] = v;
  });
}

void run_count(const Call& call) {
  double updates = 0;
  std::memcpy(&updates, call.inputs[0].data, sizeof updates);
  if (!skips_update(call, 1, 2)) updates += 1;
  std::memcpy(call.outputs[0].data, &updates, sizeof updates);
}

constexpr Signature kAdamw{
    .inputs = {Element::real, Element::real, Element::scalars, Element::real, Element::real, Element::metrics, Element::metrics}};
constexpr Signature kCount{.inputs = {Element::metrics, Element::scalars, Element::metrics}, .outputs = {Element::metrics}};

}  // namespace

constinit const KernelDef adamw = define<[]<typename T>() { return run_adamw<T>; }, kAdamw>("reference_adamw");
constinit const KernelDef count_update = define<run_count, kCount>("reference_count_update");

}  // namespace snug::backends::reference
