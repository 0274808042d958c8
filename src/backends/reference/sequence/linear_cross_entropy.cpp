#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/reference/kernels.h"
#include "backends/reference/sequence/rows.h"
#include "ir/example_rows.h"

// The target of a row is (1 - smoothing) at its label plus smoothing / V everywhere, as in PyTorch. Logits are computed again
// wherever they are needed.

namespace snug::backends::reference {

namespace {

constexpr std::int64_t kRowBlock = 16;

// What a row adds to the metrics, and what its gradient needs.
struct RowLoss {
  double log_sum_exp = 0;
  double loss = 0;
  bool label_is_largest = false;  // the first of equals counts; with a NaN none does
};

template <typename T>
class Classifier {
 public:
  explicit Classifier(const Call& call)
      : rows(call.input_shape(0)[0]),
        classes(call.input_shape(1)[0]),
        columns(call.input_shape(0)[1]),
        scalars(call.scalars(3)),
        x_(call.input<T>(0)),
        weight_(call.input<T>(1)),
        labels_(call.input<std::int32_t>(2)),
        valid_(std::min(std::int64_t{scalars.valid_examples} * rows_per_example(call.attributes), rows)),
        smoothing_(call.attributes.real("label_smoothing")) {
    const std::size_t own = call.inputs.size() - (accumulates(call.attributes) ? 1 : 0);
    if (own == 5) row_weights_ = reinterpret_cast<const T*>(call.inputs[4].data);
  }

  const std::int64_t rows, classes, columns;
  const Scalars scalars;

  const T* x(std::int64_t r) const { return &x_(r); }
  const T* weight(std::int64_t v) const { return &weight_(v); }
  double logit(std::int64_t r, std::int64_t v) const { return dot(x(r), weight(v), columns); }

  // 0 after the valid examples, and where the label is no class.
  double row_weight(std::int64_t r) const {
    const bool counts = r < valid_ && labels_(r) >= 0 && labels_(r) < classes;
    return !counts ? 0.0 : row_weights_ == nullptr ? 1.0 : double{row_weights_[r]};
  }

  RowLoss loss(std::int64_t r) const {
    const std::int64_t label = labels_(r);
    const double of_label = logit(r, label);
    RowLoss row{.label_is_largest = true};
    double largest = logit(r, 0), sum = 0, sum_of_logits = 0;
    for (std::int64_t v = 0; v < classes; ++v) {
      const double z = logit(r, v);
      // What was summed so far is brought to the new largest, so that no exponential overflows.
      if (z > largest) {
        sum *= std::exp(largest - z);
        largest = z;
      }
      sum += std::exp(z - largest);
      sum_of_logits += z;
      if (v < label ? !(of_label > z) : !(of_label >= z)) row.label_is_largest = false;
    }
    row.log_sum_exp = largest + std::log(sum);
    const auto count = static_cast<double>(classes);
    row.loss = (1.0 - smoothing_) * (row.log_sum_exp - of_label);
    if (smoothing_ > 0) row.loss += smoothing_ * (row.log_sum_exp - sum_of_logits / count);
    return row;
  }

  // Of logit v of a row that counts: (softmax - target) * weight * loss_scale / total_weight.
  double gradient(std::int64_t r, std::int64_t v, double log_sum_exp) const {
    const double target = smoothing_ / static_cast<double>(classes) + (v == labels_(r) ? 1.0 - smoothing_ : 0.0);
    return (std::exp(logit(r, v) - log_sum_exp) - target) * (row_weight(r) * scalars.loss_scale / scalars.total_weight);
  }

 private:
  View<const T> x_, weight_;
  View<const std::int32_t> labels_;
  const T* row_weights_ = nullptr;
  std::int64_t valid_;
  double smoothing_;
};

// The metrics of all rows, summed in their order. on_row(r, loss) for those that count, in parallel.
template <typename T, typename OnRow>
Metrics sum_of_losses(const Call& call, const Classifier<T>& classifier, const OnRow& on_row) {
  Metrics metrics;
  for (std::int64_t first = 0; first < classifier.rows; first += kRowBlock) {
    const std::int64_t count = std::min(kRowBlock, classifier.rows - first);
    RowLoss losses[kRowBlock];
    parallel_for(call, count, [&](std::int64_t i) {
      if (classifier.row_weight(first + i) == 0) return;
      losses[i] = classifier.loss(first + i);
      on_row(first + i, losses[i]);
    });
    for (std::int64_t i = 0; i < count; ++i) {
      const double weight = classifier.row_weight(first + i);
      if (weight == 0) continue;
      metrics.loss += weight * losses[i].loss;
      metrics.score += losses[i].label_is_largest ? weight : 0.0;
      metrics.weight += weight;
    }
  }
  if (metrics.weight != 0) metrics.loss /= classifier.scalars.total_weight;
  return metrics;
}

template <typename T>
void run_loss(const Call& call) {
  const Classifier<T> classifier(call);
  const Metrics metrics = sum_of_losses(call, classifier, [](std::int64_t, const RowLoss&) {});
  std::memcpy(call.outputs[0].data, &metrics, sizeof metrics);
}

// A row's log_sum_exp is held where its gradient will be, until that is written.
template <typename T>
void run_step(const Call& call) {
  const Classifier<T> classifier(call);
  const std::int64_t rows = classifier.rows, classes = classifier.classes, columns = classifier.columns;
  const Result<T> dweight = call.result<T>();
  const View<T> dx = call.output<T>(1);
  const Metrics metrics =
      sum_of_losses(call, classifier, [&](std::int64_t r, const RowLoss& loss) { hold(&dx(r), columns, loss.log_sum_exp); });
  std::memcpy(call.outputs[2].data, &metrics, sizeof metrics);

  parallel_for(call, classes, [&](std::int64_t v) {
    for (std::int64_t first = 0; first < columns; first += kColumnBlock) {
      const std::int64_t count = std::min(kColumnBlock, columns - first);
      double sums[kColumnBlock] = {};
      for (std::int64_t r = 0; r < rows; ++r) {
        if (classifier.row_weight(r) == 0) continue;
        const double gradient = classifier.gradient(r, v, held(&dx(r), columns));
        for (std::int64_t c = 0; c < count; ++c) sums[c] += gradient * classifier.x(r)[first + c];
      }
      for (std::int64_t c = 0; c < count; ++c) dweight.set(dweight.offset(v, first + c), sums[c]);
    }
  });

  parallel_for(call, rows, [&](std::int64_t r) {
    const bool counts = classifier.row_weight(r) != 0;
    const double log_sum_exp = counts ? held(&dx(r), columns) : 0;
    for (std::int64_t first = 0; first < columns; first += kColumnBlock) {
      const std::int64_t count = std::min(kColumnBlock, columns - first);
      double sums[kColumnBlock] = {};
      for (std::int64_t v = 0; counts && v < classes; ++v) {
        const double gradient = classifier.gradient(r, v, log_sum_exp);
        for (std::int64_t c = 0; c < count; ++c) sums[c] += gradient * classifier.weight(v)[first + c];
      }
      for (std::int64_t c = 0; c < count; ++c) dx(r, first + c) = static_cast<T>(sums[c]);
    }
  });
}

constexpr ElementList kInputs{Element::real, Element::real, Element::labels, Element::scalars, Element::statistic};
constexpr Signature kLoss{.inputs = kInputs, .outputs = {Element::metrics}};
constexpr Signature kStep{.inputs = kInputs, .outputs = {Element::real, Element::real, Element::metrics}};

}  // namespace

constinit const KernelDef linear_cross_entropy =
    define<[]<typename T>() { return run_loss<T>; }, kLoss>("reference_linear_cross_entropy");
constinit const KernelDef linear_cross_entropy_step =
    define<[]<typename T>() { return run_step<T>; }, kStep>("reference_linear_cross_entropy_step");

}  // namespace snug::backends::reference
