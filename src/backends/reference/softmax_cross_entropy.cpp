#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backends/reference/call.h"
#include "backends/reference/kernels.h"

// The target of a row is (1 - smoothing) at its label plus smoothing / K everywhere, as in PyTorch. A label outside [0, K) on a
// valid row means corrupt data (the data layer checks labels): the loss and that row's gradient become NaN, which no run
// overlooks.

namespace snug::backends::reference {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::int64_t valid_rows(const Call& call, const Scalars& scalars) {
  return std::min(static_cast<std::int64_t>(scalars.valid_examples), call.input_shape(0)[0]);
}

// log of the sum of exponentials of row n; the largest is taken out, so that none overflows.
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

// The first of equals counts as the largest; where there is a NaN nothing does.
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
  const std::int64_t valid = valid_rows(call, scalars);
  Metrics metrics;
  for (std::int64_t n = 0; n < valid; ++n) {
    const std::int64_t label = labels(n);
    const bool possible = label >= 0 && label < classes;
    metrics.loss += possible ? loss_of_row(logits, n, classes, label, smoothing) : kNaN;
    metrics.correct += possible && label_is_largest(logits, n, classes, label) ? 1.0 : 0.0;
  }
  if (valid > 0) metrics.loss /= static_cast<double>(scalars.batch_examples);
  metrics.examples = static_cast<double>(valid);
  std::memcpy(call.outputs[0].data, &metrics, sizeof metrics);
}

// (softmax - target) * loss_scale / batch_examples; 0 for padding. Each logit is read before its gradient takes its place.
template <typename T>
void run_grad(const Call& call) {
  const View<const T> logits = call.input<T>(0);
  const View<const std::int32_t> labels = call.input<std::int32_t>(1);
  const Scalars scalars = call.scalars(2);
  const double smoothing = call.attributes.real("label_smoothing");
  const View<T> gradient = call.output<T>(0);
  const std::int64_t classes = call.input_shape(0)[1];
  const std::int64_t valid = valid_rows(call, scalars);
  const double weight = scalars.loss_scale / static_cast<double>(scalars.batch_examples);
  parallel_for(call, call.input_shape(0)[0], [&](std::int64_t n) {
    const std::int64_t label = labels(n);
    const bool possible = label >= 0 && label < classes;
    const double log_sum = n < valid ? log_sum_exp(logits, n, classes) : 0.0;
    for (std::int64_t k = 0; k < classes; ++k) {
      const double target = smoothing / static_cast<double>(classes) + (k == label ? 1.0 - smoothing : 0.0);
      const double difference = std::exp(logits(n, k) - log_sum) - target;
      gradient(n, k) = static_cast<T>(n >= valid ? 0.0 : possible ? difference * weight : kNaN);
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
