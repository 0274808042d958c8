#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backends/reference/call.h"
#include "backends/reference/kernels.h"
#include "ir/example_rows.h"

// The target of a row is (1 - smoothing) at its label plus smoothing / K everywhere, as in PyTorch. A label outside [0, K) on a
// row with a weight above 0 means corrupt data (the data layer checks labels): the loss and that row's gradient become NaN, which
// stops a run.

namespace snug::backends::reference {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// The weight of each row: 0 after the valid examples.
template <typename T>
class RowWeights {
 public:
  RowWeights(const Call& call, const Scalars& scalars)
      : valid_(std::min(scalars.valid_examples * rows_per_example(call.attributes), call.input_shape(0)[0])),
        weights_(call.inputs.size() == 4 ? reinterpret_cast<const T*>(call.inputs[3].data) : nullptr) {}

  double operator()(std::int64_t n) const { return n >= valid_ ? 0.0 : weights_ == nullptr ? 1.0 : double{weights_[n]}; }

 private:
  std::int64_t valid_;
  const T* weights_;
};

// log of the sum of exponentials of row n; the largest is subtracted, so that none overflows.
template <typename T>
double log_sum_exp(const View<const T>& logits, std::int64_t n, std::int64_t classes) {
  double largest = logits(n, 0);
  for (std::int64_t k = 1; k < classes; ++k) largest = std::max(largest, double{logits(n, k)});
  double sum = 0;
  for (std::int64_t k = 0; k < classes; ++k) sum += std::exp(logits(n, k) - largest);
  return largest + std::log(sum);
}

template <typename T>
double loss_of_row(const View<const T>& logits, std::int64_t n, std::int64_t classes, std::int64_t label, double smoothing) {
  const double log_sum = log_sum_exp(logits, n, classes);
  double loss = (1.0 - smoothing) * (log_sum - logits(n, label));
  if (smoothing > 0) {
    double sum = 0;
    for (std::int64_t k = 0; k < classes; ++k) sum += log_sum - logits(n, k);
    loss += smoothing / static_cast<double>(classes) * sum;
  }
  return loss;
}

// The first of equals counts as the largest; with a NaN none does.
template <typename T>
bool label_is_largest(const View<const T>& logits, std::int64_t n, std::int64_t classes, std::int64_t label) {
  for (std::int64_t k = 0; k < classes; ++k) {
    if (k < label ? !(logits(n, label) > logits(n, k)) : !(logits(n, label) >= logits(n, k))) return false;
  }
  return true;
}

// One output, so one thread.
template <typename T>
void run_loss(const Call& call) {
  const View<const T> logits = call.input<T>(0);
  const View<const std::int32_t> labels = call.input<std::int32_t>(1);
  const Scalars scalars = call.scalars(2);
  const double smoothing = call.attributes.real("label_smoothing");
  const std::int64_t classes = call.input_shape(0)[1];
  const RowWeights<T> weights(call, scalars);
  Metrics metrics;
  for (std::int64_t n = 0; n < call.input_shape(0)[0]; ++n) {
    const double weight = weights(n);
    if (weight == 0) continue;
    const std::int64_t label = labels(n);
    const bool possible = label >= 0 && label < classes;
    metrics.loss += weight * (possible ? loss_of_row(logits, n, classes, label, smoothing) : kNaN);
    metrics.score += possible && label_is_largest(logits, n, classes, label) ? weight : 0.0;
    metrics.weight += weight;
  }
  if (metrics.weight != 0) metrics.loss /= scalars.total_weight;
  std::memcpy(call.outputs[0].data, &metrics, sizeof metrics);
}

// (softmax - target) * weight * loss_scale / total_weight; 0 where a row's weight is 0. Each logit is read before its gradient
// overwrites it.
template <typename T>
void run_grad(const Call& call) {
  const View<const T> logits = call.input<T>(0);
  const View<const std::int32_t> labels = call.input<std::int32_t>(1);
  const Scalars scalars = call.scalars(2);
  const double smoothing = call.attributes.real("label_smoothing");
  const View<T> gradient = call.output<T>(0);
  const std::int64_t classes = call.input_shape(0)[1];
  const RowWeights<T> weights(call, scalars);
  const double scale = scalars.loss_scale / scalars.total_weight;
  parallel_for(call, call.input_shape(0)[0], [&](std::int64_t n) {
    const std::int64_t label = labels(n);
    const bool possible = label >= 0 && label < classes;
    const double weight = weights(n);
    const double log_sum = weight != 0 ? log_sum_exp(logits, n, classes) : 0.0;
    for (std::int64_t k = 0; k < classes; ++k) {
      const double target = smoothing / static_cast<double>(classes) + (k == label ? 1.0 - smoothing : 0.0);
      const double difference = std::exp(logits(n, k) - log_sum) - target;
      gradient(n, k) = static_cast<T>(weight == 0 ? 0.0 : possible ? difference * (weight * scale) : kNaN);
    }
  });
}

constexpr Signature kLoss{.inputs = {Element::real, Element::labels, Element::scalars}, .outputs = {Element::metrics}};
constexpr Signature kGrad{.inputs = {Element::real, Element::labels, Element::scalars}};

}  // namespace

constinit const KernelDef softmax_cross_entropy =
    define<[]<typename T>() { return run_loss<T>; }, kLoss>("reference_softmax_cross_entropy");
constinit const KernelDef softmax_cross_entropy_grad =
    define<[]<typename T>() { return run_grad<T>; }, kGrad>("reference_softmax_cross_entropy_grad");

}  // namespace snug::backends::reference
