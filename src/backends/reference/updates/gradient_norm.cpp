#include <algorithm>
#include <cmath>

#include "backends/reference/call.h"
#include "backends/reference/kernels.h"

namespace snug::backends::reference {

namespace {

// In logical order, so that the bits do not depend on the layout.
template <typename T>
void run_sum(const Call& call) {
  const Type& type = call.inputs[0].type;
  Type logical = type;
  logical.layout = Layout::row_major();
  const PositionMap to_memory(logical, type);
  const auto* gradient = reinterpret_cast<const T*>(call.inputs[0].data);
  double sum = 0;
  for (std::int64_t i = 0; i < type.elements(); ++i) {
    const auto value = static_cast<double>(gradient[to_memory(i)]);
    sum += value * value;
  }
  if (call.inputs.size() == 2) sum += *reinterpret_cast<const double*>(call.inputs[1].data);
  *reinterpret_cast<double*>(call.outputs[0].data) = sum;
}

// PyTorch's rule; the 1e-6 prevents a division by zero.
void run_factor(const Call& call) {
  const Scalars scalars = call.scalars(1);
  GradientNorm result;
  result.norm = std::sqrt(*reinterpret_cast<const double*>(call.inputs[0].data)) / scalars.loss_scale;
  result.factor = std::isfinite(result.norm) ? std::min(1.0, static_cast<double>(scalars.clip_norm) / (result.norm + 1e-6))
                                             : std::numeric_limits<double>::quiet_NaN();
  std::memcpy(call.outputs[0].data, &result, sizeof result);
}

void run_finite(const Call& call) {
  Metrics metrics;
  std::memcpy(&metrics, call.inputs[0].data, sizeof metrics);
  const GradientNorm result{.norm = 0, .factor = std::isfinite(metrics.loss) ? 1 : std::numeric_limits<double>::quiet_NaN()};
  std::memcpy(call.outputs[0].data, &result, sizeof result);
}

constexpr Signature kSum{.inputs = {Element::real, Element::metrics}, .outputs = {Element::metrics}};
constexpr Signature kFinite{.inputs = {Element::metrics}, .outputs = {Element::metrics}};
constexpr Signature kFactor{.inputs = {Element::metrics, Element::scalars}, .outputs = {Element::metrics}};

}  // namespace

constinit const KernelDef sum_of_squares = define<[]<typename T>() { return run_sum<T>; }, kSum>("reference_sum_of_squares");
constinit const KernelDef clip_factor = define<run_factor, kFactor>("reference_clip_factor");
constinit const KernelDef finite_factor = define<run_finite, kFinite>("reference_finite_factor");

}  // namespace snug::backends::reference
