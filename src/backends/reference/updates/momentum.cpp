#include "backends/reference/call.h"
#include "backends/reference/kernels.h"

namespace snug::backends::reference {

namespace {

template <typename T>
void run_momentum_add(const Call& call) {
  const auto momentum = call.elementwise<T>(0);
  const auto gradient = call.elementwise<T>(1);
  const Result<T> sum = call.result<T>();
  parallel_for(call, sum.elements(), [&](std::int64_t i) { sum.set(i, momentum[i] + gradient[i]); });
}

template <typename T>
void run_momentum_decay(const Call& call) {
  const auto momentum = call.elementwise<T>(0);
  const auto weight = call.elementwise<T>(1);
  const Result<T> moved = call.result<T>();
  const bool first = call.scalars(2).is_first_microbatch != 0;
  const T share = static_cast<T>(call.attributes.real("momentum"));
  const T weight_decay = static_cast<T>(call.attributes.real("weight_decay"));
  parallel_for(call, moved.elements(), [&](std::int64_t i) {
    const T m = momentum[i];
    moved.set(i, first ? share * m + weight_decay * weight[i] : m);
  });
}

template <typename T>
void run_momentum_step(const Call& call) {
  const auto weight = call.elementwise<T>(0);
  const auto momentum = call.elementwise<T>(2);
  const Result<T> moved = call.result<T>();
  const Scalars scalars = call.scalars(1);
  const T learning_rate = static_cast<T>(scalars.learning_rate);
  parallel_for(call, moved.elements(), [&](std::int64_t i) {
    const T w = weight[i];
    moved.set(i, scalars.skip_update != 0 ? w : w - learning_rate * momentum[i]);
  });
}

constexpr Signature kTwo{.inputs = {Element::real, Element::real, Element::scalars}};
constexpr Signature kStep{.inputs = {Element::real, Element::scalars}};

}  // namespace

constinit const KernelDef momentum_add = define<[]<typename T>() { return run_momentum_add<T>; }, kTwo>("reference_momentum_add");
constinit const KernelDef momentum_decay =
    define<[]<typename T>() { return run_momentum_decay<T>; }, kTwo>("reference_momentum_decay");
constinit const KernelDef momentum_step =
    define<[]<typename T>() { return run_momentum_step<T>; }, kStep>("reference_momentum_step");

}  // namespace snug::backends::reference
