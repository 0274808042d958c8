#include <cstring>

#include <fmt/format.h>

#include "backends/cpu/half/rows.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/sequence/classifier.h"
#include "backends/cpu/sequence/loops.h"
#include "backends/cpu/sequence/rows.h"
#include "ir/example_rows.h"
#include "ir/scalars.h"

// linear_cross_entropy(x, weight, labels, scalars, weights?) and its step: a chunk of rows at a time has logits, in float; the
// gradients of a row take the place of its logits. Rows that do not count are read as zeros, so that nothing of theirs, not even
// a NaN, comes into a sum.

namespace snug::backends::cpu {

namespace {

// Rows of logits that a thread looks at before it asks for more.
constexpr std::int64_t kRowsOfLogits = 4;
// With more, no chunk is faster than a smaller one: the logits leave the caches.
constexpr Bytes kMostLogits{std::int64_t{64} << 20U};

// What one run is told.
struct Rows {
  const std::int32_t* labels;
  const float* weights;  // nullptr: all are 1
  Scalars scalars;
  std::int64_t valid, classes;
  double smoothing;

  double weight(std::int64_t row) const {
    if (row >= valid || labels[row] < 0 || labels[row] >= classes) return 0;
    return weights == nullptr ? 1 : static_cast<double>(weights[row]);
  }

  RowLoss loss(std::int64_t row, const float* logits) const {
    const simd::LogitSums sums = simd::sums_of_logits(logits, classes, labels[row]);
    double loss = (1 - smoothing) * (sums.log_sum_exp - static_cast<double>(logits[labels[row]]));
    if (smoothing > 0) loss += smoothing * (sums.log_sum_exp - sums.logits / static_cast<double>(classes));
    const double of_row = weight(row);
    return {
        .loss = of_row * loss, .log_sum_exp = sums.log_sum_exp, .weight = of_row, .score = sums.label_is_largest ? of_row : 0};
  }

  // Of the classes from `first_class` on.
  simd::LogitGradient gradient(std::int64_t row, const RowLoss& loss, std::int64_t first_class) const {
    const double elsewhere = smoothing / static_cast<double>(classes);
    return {.log_sum_exp = loss.log_sum_exp,
            .scale = static_cast<float>(loss.weight * (scalars.loss_scale / scalars.total_weight)),
            .elsewhere = static_cast<float>(elsewhere),
            .at_label = static_cast<float>(elsewhere + (1 - smoothing)),
            .label = labels[row] - first_class};
  }
};

bool has_row_weights(std::size_t inputs, const Attributes& attributes) { return inputs - (accumulates(attributes) ? 1 : 0) == 5; }

// T: what is stored, U: what products read.
template <typename T, typename U>
class ClassifierKernel final : public BoundKernel {
 public:
  ClassifierKernel(const KernelArguments& arguments, const Classifier& classifier)
      : c_(classifier),
        products_(classifier.products()),
        x_(elements<T>(arguments.inputs[0])),
        weight_(elements<T>(arguments.inputs[1])),
        labels_(reinterpret_cast<const std::int32_t*>(arguments.inputs[2].data)),
        scalars_(reinterpret_cast<const Scalars*>(arguments.inputs[3].data)),
        row_weights_(has_row_weights(arguments.inputs.size(), arguments.attributes)
                         ? reinterpret_cast<const float*>(arguments.inputs[4].data)
                         : nullptr),
        rows_per_example_(rows_per_example(arguments.attributes)),
        smoothing_(arguments.attributes.real("label_smoothing")),
        metrics_(arguments.outputs.back().data) {
    if (c_.gradient != WeightGradient::none) {
      addend_ = addend_of<T>(arguments);
      dweight_ = elements<T>(arguments.outputs[0]);
      dx_ = elements<T>(arguments.outputs[1]);
    }
    WorkspaceCutter cutter(arguments.workspace.data());
    pieces_ = c_.cut(cutter, products_);
    losses_ = reinterpret_cast<RowLoss*>(pieces_.losses);
    logits_ = reinterpret_cast<float*>(pieces_.logits);
    products_.bind(c_.threads, pieces_.scratchpads);
  }

  void run() override {
    const Rows rows{.labels = labels_,
                    .weights = row_weights_,
                    .scalars = *scalars_,
                    .valid = std::min(std::int64_t{scalars_->valid_examples} * rows_per_example_, c_.rows),
                    .classes = c_.classes,
                    .smoothing = smoothing_};
    Classifier::for_each_stretch(c_.rows, c_.chunk, [&](std::int64_t first, std::int64_t count) {
      make_logits(rows, first, count);
      make_losses(rows, first, count);
      if (c_.gradient == WeightGradient::none) return;
      make_input_gradient(first, count);
      if (c_.gradient == WeightGradient::summed) add_weight_gradient(first, count);
    });
    if (c_.gradient == WeightGradient::twice) make_weight_gradient(rows);
    products_.check();
    make_metrics();
  }

 private:
  float* sum() const { return reinterpret_cast<float*>(pieces_.sum); }
  U* x_of_chunk() const { return reinterpret_cast<U*>(pieces_.x); }
  // Where the gradients of a row's logits are.
  static U* gradients(float* logits, std::int64_t stride, std::int64_t row) {
    return reinterpret_cast<U*>(logits + row * stride);
  }

  // body(thread, numbers...) for every pair of stretches.
  template <typename Body>
  void for_each_pair(std::int64_t a, std::int64_t a_size, std::int64_t b, std::int64_t b_size, const Body& body) const {
    const std::int64_t of_a = (a + a_size - 1) / a_size, of_b = (b + b_size - 1) / b_size;
    for_each_item(of_a * of_b, c_.threads, [&](int thread, std::int64_t item) {
      const std::int64_t a_first = item % of_a * a_size, b_first = item / of_a * b_size;
      body(thread, a_first, std::min(a_size, a - a_first), b_first, std::min(b_size, b - b_first));
    });
  }

  // Rows of x as products read them; zeros where they do not count.
  void read_rows(const Rows& rows, std::int64_t first, std::int64_t count, U* to) const {
    for (std::int64_t row = 0; row < count; ++row) {
      const T* const from = x_ + (first + row) * c_.columns;
      if (rows.weight(first + row) == 0) {
        std::fill_n(to + row * c_.columns, c_.columns, U{});
      } else if constexpr (std::is_same_v<T, U>) {
        std::copy_n(from, c_.columns, to + row * c_.columns);
      } else {
        simd::element_loops<T>().widen(from, to + row * c_.columns, c_.columns);
      }
    }
  }

  // A tile of the weight as products read it, from this class and column on, with rows as `step` says.
  const U* read_weight(std::int64_t first, std::int64_t count, std::int64_t column, std::int64_t width,
                       std::byte* scratch) const {
    const T* const from = weight_ + first * c_.columns + column;
    if constexpr (std::is_same_v<T, U>) {
      return from;
    } else {
      auto* const to = reinterpret_cast<U*>(scratch);
      widen_rows(from, c_.columns, to, width, count);
      return to;
    }
  }

  void make_logits(const Rows& rows, std::int64_t first, std::int64_t count) const {
    const bool is_short = count * c_.columns < (1 << 15);  // waiting for another thread would take longer
    for_each_part(count, is_short ? 1 : c_.threads, 1, [&](int, Range part) {
      read_rows(rows, first + part.begin, part.size(), x_of_chunk() + part.begin * c_.columns);
    });
    for_each_pair(count, c_.row_block, c_.classes, c_.class_tile,
                  [&](int thread, std::int64_t row, std::int64_t of_rows, std::int64_t tile, std::int64_t of_tile) {
                    const U* const weight = read_weight(tile, of_tile, 0, c_.columns, c_.scratch_of(thread, pieces_).weight);
                    products_.run(c_.logits(of_rows, of_tile, c_.stride), thread, x_of_chunk() + row * c_.columns, weight,
                                  logits_ + row * c_.stride + tile);
                  });
  }

  void make_losses(const Rows& rows, std::int64_t first, std::int64_t count) const {
    for_each_pair(count, kRowsOfLogits, 1, 1, [&](int, std::int64_t begin, std::int64_t of_rows, std::int64_t, std::int64_t) {
      for (std::int64_t row = begin; row < begin + of_rows; ++row) {
        float* const logits = logits_ + row * c_.stride;
        RowLoss& loss = losses_[first + row];
        loss = {};
        if (rows.weight(first + row) != 0) loss = rows.loss(first + row, logits);
        if (c_.gradient != WeightGradient::none) replace_logits(rows, first + row, logits, c_.classes, 0);
      }
    });
  }

  void replace_logits(const Rows& rows, std::int64_t row, float* logits, std::int64_t count, std::int64_t first_class) const {
    auto* const gradients = reinterpret_cast<U*>(logits);
    if (losses_[row].weight == 0) {
      std::fill_n(gradients, count, U{});
    } else {
      simd::classifier_loops<U>().gradient(logits, gradients, count, rows.gradient(row, losses_[row], first_class));
    }
  }

  void make_input_gradient(std::int64_t first, std::int64_t count) const {
    for_each_pair(count, c_.row_block, c_.columns, c_.column_block,
                  [&](int thread, std::int64_t row, std::int64_t of_rows, std::int64_t column, std::int64_t width) {
                    const Classifier::Scratch scratch = c_.scratch_of(thread, pieces_);
                    T* const to = dx_ + (first + row) * c_.columns + column;
                    float* sums = nullptr;
                    if constexpr (std::is_same_v<T, float>) {
                      sums = to;
                    } else {
                      sums = reinterpret_cast<float*>(scratch.result);
                    }
                    Classifier::for_each_stretch(c_.classes, c_.depth, [&](std::int64_t tile, std::int64_t of_tile) {
                      const U* const weight = read_weight(tile, of_tile, column, width, scratch.weight);
                      products_.run(c_.input_gradient(of_rows, of_tile, width, tile != 0), thread,
                                    gradients(logits_, c_.stride, row) + tile, weight, sums);
                    });
                    if constexpr (!std::is_same_v<T, float>) narrow_rows(sums, to, c_.columns, width, of_rows);
                    for (std::int64_t r = 0; r < of_rows; ++r) {
                      if (losses_[first + row + r].weight == 0) std::fill_n(to + r * c_.columns, width, T{});
                    }
                  });
  }

  // Where a tile of the weight's gradient is made, and from there to its place.
  float* tile_of_gradient(std::int64_t tile, const Classifier::Scratch& scratch) const {
    if constexpr (std::is_same_v<T, float>) {
      if (c_.is_direct()) return dweight_ + tile * c_.columns;
    }
    if (c_.has_sum()) return sum() + tile * c_.columns;
    return reinterpret_cast<float*>(scratch.result);
  }
  void finish_tile(const float* made, std::int64_t tile, std::int64_t of_tile) const {
    if (c_.is_direct()) return;
    const std::int64_t begin = tile * c_.columns, count = of_tile * c_.columns;
    if (addend_ != nullptr) {
      simd::element_loops<T>().add_floats(addend_ + begin, made, dweight_ + begin, count);
    } else {
      simd::element_loops<T>().narrow(made, dweight_ + begin, count);
    }
  }

  void add_weight_gradient(std::int64_t first, std::int64_t count) const {
    for_each_pair(c_.classes, c_.class_tile, 1, 1,
                  [&](int thread, std::int64_t tile, std::int64_t of_tile, std::int64_t, std::int64_t) {
                    float* const made = tile_of_gradient(tile, c_.scratch_of(thread, pieces_));
                    products_.run(c_.weight_gradient(count, of_tile, c_.stride, first != 0), thread,
                                  gradients(logits_, c_.stride, 0) + tile, x_of_chunk(), made);
                    if (first + count == c_.rows) finish_tile(made, tile, of_tile);
                  });
  }

  // Of all rows, from logits that are made again for a tile of classes.
  void make_weight_gradient(const Rows& rows) const {
    for_each_pair(c_.classes, c_.class_tile, 1, 1,
                  [&](int thread, std::int64_t tile, std::int64_t of_tile, std::int64_t, std::int64_t) {
                    const Classifier::Scratch scratch = c_.scratch_of(thread, pieces_);
                    const U* const weight = read_weight(tile, of_tile, 0, c_.columns, scratch.weight);
                    auto* const x = reinterpret_cast<U*>(scratch.x);
                    auto* const logits = reinterpret_cast<float*>(scratch.logits);
                    float* const made = tile_of_gradient(tile, scratch);
                    Classifier::for_each_stretch(c_.rows, c_.again_block, [&](std::int64_t first, std::int64_t count) {
                      read_rows(rows, first, count, x);
                      products_.run(c_.logits(count, of_tile, c_.tile_stride), thread, x, weight, logits);
                      for (std::int64_t row = 0; row < count; ++row)
                        replace_logits(rows, first + row, logits + row * c_.tile_stride, of_tile, tile);
                      products_.run(c_.weight_gradient(count, of_tile, c_.tile_stride, first != 0), thread, logits, x, made);
                    });
                    finish_tile(made, tile, of_tile);
                  });
  }

  // Summed in the order of the rows.
  void make_metrics() const {
    Metrics metrics;
    for (std::int64_t row = 0; row < c_.rows; ++row) {
      if (losses_[row].weight == 0) continue;
      metrics.loss += losses_[row].loss;
      metrics.score += losses_[row].score;
      metrics.weight += losses_[row].weight;
    }
    if (metrics.weight != 0) metrics.loss /= scalars_->total_weight;
    std::memcpy(metrics_, &metrics, sizeof metrics);
  }

  const Classifier c_;
  ThreadProducts products_;
  const T *x_, *weight_;
  const std::int32_t* labels_;
  const Scalars* scalars_;
  const float* row_weights_;
  std::int64_t rows_per_example_;
  double smoothing_;
  std::byte* metrics_;
  const T* addend_ = nullptr;
  T *dweight_ = nullptr, *dx_ = nullptr;
  Classifier::Pieces pieces_{};
  RowLoss* losses_ = nullptr;
  float* logits_ = nullptr;
};

template <const ClassifierVariant& V>
KernelMatch match(const KernelQuery& query) {
  const bool adds = accumulates(query.attributes);
  const bool weighted = has_row_weights(query.inputs.size(), query.attributes);
  const std::size_t last = adds ? query.inputs.size() - 1 : 0;
  const auto reason = weighted ? objection_to_rows(query, {0, 1, last}, {4}) : objection_to_rows(query, {0, 1, last});
  if (reason) return Refuse{*reason};
  const Classifier classifier(V, query.inputs[0], query.inputs[1], adds, query.threads);
  const auto logits_of = [&](std::int64_t rows) { return Bytes(4 * rows * classifier.stride); };
  if (!V.is_last && logits_of(classifier.chunk) > kMostLogits)
    return Refuse{fmt::format("the logits of {} rows leave the caches", classifier.chunk)};
  if (!V.is_first && classifier.is_single() && logits_of(classifier.rows) <= kMostLogits)
    return Refuse{fmt::format("{} rows are not more than a chunk", classifier.rows)};
  try {
    const ThreadProducts products = classifier.products();
    WorkspaceCutter cutter;
    classifier.cut(cutter, products);
    return Accept{
        .workspace = cutter.used(), .numerics = V.numerics, .slowdown = V.slowdown, .is_reference = products.is_reference()};
  } catch (const dnnl::error& error) {
    return Refuse{fmt::format("oneDNN: {}", error.message)};
  }
}

template <const ClassifierVariant& V>
std::unique_ptr<BoundKernel> bind(const KernelArguments& arguments) {
  const Type& x = arguments.inputs[0].type;
  const Classifier classifier(V, x, arguments.inputs[1].type, accumulates(arguments.attributes), arguments.threads);
  return with_storage(x.dtype, [&]<typename T>(T /*tag*/) -> std::unique_ptr<BoundKernel> {
    if constexpr (!std::is_same_v<T, float>) {
      if (classifier.widens()) return std::make_unique<ClassifierKernel<T, float>>(arguments, classifier);
    }
    return std::make_unique<ClassifierKernel<T, T>>(arguments, classifier);
  });
}

template <const ClassifierVariant& V>
consteval KernelDef define() {
  return {.name = V.name, .op = V.op, .match = match<V>, .bind = bind<V>};
}

// Name, op and numerics of the variant with logits of so many rows. How much slower it is was measured in processor time on one
// thread of a Zen 5: 4096 rows of 384 columns with 8192 classes, and 1024 rows of 768 with 50257.
#define SNUG_LOSS(rows, is_first, is_last, slowdown)                                                                     \
  constexpr ClassifierVariant kLoss##rows {                                                                              \
    "onednn_linear_cross_entropy_" #rows, "linear_cross_entropy", "onednn_" #rows, WeightGradient::none, rows, is_first, \
        is_last, slowdown                                                                                                \
  }
#define SNUG_STEP(how, rows, is_first, is_last, slowdown)                                                      \
  constexpr ClassifierVariant kStep_##how##rows {                                                              \
    "onednn_linear_cross_entropy_step_" #how "_" #rows, "linear_cross_entropy_step", "onednn_" #how "_" #rows, \
        WeightGradient::how, rows, is_first, is_last, slowdown                                                 \
  }

SNUG_LOSS(1024, true, false, 1);
SNUG_LOSS(256, false, false, 1.03);
SNUG_LOSS(64, false, false, 1.2);
SNUG_LOSS(16, false, true, 1.8);
SNUG_STEP(summed, 1024, true, false, 1);
SNUG_STEP(summed, 256, false, false, 1.03);
SNUG_STEP(twice, 256, false, false, 1.33);
SNUG_STEP(summed, 64, false, false, 1.35);
SNUG_STEP(twice, 64, false, false, 1.45);
SNUG_STEP(twice, 16, false, true, 2);

}  // namespace

constinit const KernelDef onednn_linear_cross_entropy_1024 = define<kLoss1024>();
constinit const KernelDef onednn_linear_cross_entropy_256 = define<kLoss256>();
constinit const KernelDef onednn_linear_cross_entropy_64 = define<kLoss64>();
constinit const KernelDef onednn_linear_cross_entropy_16 = define<kLoss16>();
constinit const KernelDef onednn_linear_cross_entropy_step_summed_1024 = define<kStep_summed1024>();
constinit const KernelDef onednn_linear_cross_entropy_step_summed_256 = define<kStep_summed256>();
constinit const KernelDef onednn_linear_cross_entropy_step_summed_64 = define<kStep_summed64>();
constinit const KernelDef onednn_linear_cross_entropy_step_twice_256 = define<kStep_twice256>();
constinit const KernelDef onednn_linear_cross_entropy_step_twice_64 = define<kStep_twice64>();
constinit const KernelDef onednn_linear_cross_entropy_step_twice_16 = define<kStep_twice16>();

}  // namespace snug::backends::cpu
