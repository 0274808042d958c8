#include <algorithm>

#include <fmt/format.h>

#include "backends/cuda/call.h"
#include "backends/cuda/kernel_chain.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/linear/any_product.h"
#include "backends/cuda/pointwise/elementwise.h"
#include "backends/cuda/sequence/classifier_loss.h"
#include "ir/example_rows.h"

// linear_cross_entropy and its step, with logits in float of as many rows at a time as the workspace has room for; a row's
// gradients take the place of its logits. Where not all rows fit, the weight's gradient is made in one of two ways:
//   summed   over the chunks of rows, in float, in a workspace as large as the weight
//   twice    after all losses are known, the logits of a slice of the classes are made again, for all rows: one more product,
//            but no sum, and no workspace beside the slice's
// Its rows are made a slice at a time anyway, so that what is added to a sum needs a slice of workspace.
//
// A product over an odd number of classes, such as GPT-2's 50,257, takes five times as long as one over a multiple of 64, which
// cuBLASLt reads in packs. So every product is two: over the classes up to the last multiple of 64, and over the rest.

namespace snug::backends::cuda {

namespace {

using launch::ClassifierRows;
using launch::LogitRows;
using launch::RowLoss;

enum class WeightGradient : std::uint8_t { none, at_once, summed, twice };

// A kernel of the list below: how many rows have logits at a time (0: all) and what that costs.
struct Variant {
  std::string_view name, op, numerics, numerics_with_tf32;
  WeightGradient gradient;
  std::int64_t rows;
  double slowdown;  // estimated: twice makes four products instead of three, and small ones keep a GPU less busy
};

constexpr std::int64_t kSlice = 8192;  // classes, of the weight's gradient
constexpr std::int64_t kLeastSlice = 64;
constexpr std::int64_t kEven = 64;  // classes
// More logits at a time gain nothing: the products of these already keep a GPU busy.
constexpr Bytes kMostLogits{256 << 20};
constexpr std::int64_t kFewestRows = 128;   // of the variant with the least workspace
constexpr std::int64_t kRowAlignment = 32;  // floats: 128 bytes
constexpr Bytes kPieceAlignment{256};

std::int64_t round_up(std::int64_t x, std::int64_t unit) { return (x + unit - 1) / unit * unit; }

// Cuts a workspace into pieces; without one it only counts the bytes.
class Cutter {
 public:
  explicit Cutter(std::span<std::byte> workspace = {}) : begin_(on_library_boundary(workspace).data()) {}

  template <typename T>
  T* cut(std::int64_t count) {
    std::byte* piece = begin_ == nullptr ? nullptr : begin_ + used_.count();
    used_ += Bytes(round_up(count * static_cast<std::int64_t>(sizeof(T)), kPieceAlignment.count()));
    return reinterpret_cast<T*>(piece);
  }
  Bytes used() const { return library_workspace(used_); }

 private:
  std::byte* begin_;
  Bytes used_;
};

// All that a variant does with one node, from types alone.
class Division {
 public:
  Division(const Variant& variant, const Type& x, const Type& weight, bool accumulates)
      : gradient(variant.gradient),
        dtype(x.dtype),
        rows(x.shape[0]),
        classes(weight.shape[0]),
        columns(x.shape[1]),
        chunk(variant.rows == 0 ? rows : std::min(variant.rows, rows)),
        even(classes < kEven ? classes : classes / kEven * kEven),
        stride(round_up(classes, kRowAlignment)),
        element_bytes(bits_per_element(dtype) / 8),
        adds(accumulates) {
    if (gradient == WeightGradient::at_once) slice = std::min(kSlice, classes);
    // The slice's logits, of all rows, take about the bytes of a chunk's.
    if (gradient == WeightGradient::twice)
      slice = std::clamp(chunk * stride / rows / kLeastSlice * kLeastSlice, std::min(kLeastSlice, classes), classes);
    slice_stride = round_up(slice, kRowAlignment);
  }

  const WeightGradient gradient;              // NOLINT: all of these are constants
  const DType dtype;                          // NOLINT
  const std::int64_t rows, classes, columns;  // NOLINT
  const std::int64_t chunk;                   // NOLINT: rows whose logits exist at a time
  const std::int64_t even;                    // NOLINT: classes of the first product; `rest` are of another
  const std::int64_t stride;                  // NOLINT: floats from a row of them to the next
  const std::int64_t element_bytes;           // NOLINT
  const bool adds;                            // NOLINT: the weight's gradient to a sum
  std::int64_t slice = 0, slice_stride = 0;

  std::int64_t rest() const { return classes - even; }

  // Of `count` rows and some classes: x weight^T.
  MatrixProblem logits(std::int64_t count, std::int64_t of_classes) const { return logits_of(count, of_classes, stride); }
  MatrixProblem logits_of_slice(std::int64_t of_slice) const { return logits_of(rows, of_slice, slice_stride); }
  // dlogits weight; where there is a rest, its product is added, in float.
  MatrixProblem input_gradient(std::int64_t count) const { return input_gradient_of(count, even, false); }
  MatrixProblem input_gradient_of_rest(std::int64_t count) const { return input_gradient_of(count, rest(), true); }
  bool rounds_input_gradient() const { return rest() > 0 && dtype != DType::f32; }
  // dlogits^T x for some classes, as the gradient is stored, ...
  MatrixProblem weight_gradient(std::int64_t of_slice) const {
    return {.rows = of_slice,
            .columns = columns,
            .depth = rows,
            .left_transposed = true,
            .right_transposed = false,
            .dtype = dtype,
            .left_stride = in_elements(gradient == WeightGradient::twice ? slice_stride : stride)};
  }
  // ... and a term of the sum over the chunks.
  MatrixProblem weight_gradient_term(std::int64_t count, std::int64_t of_classes, bool is_first) const {
    return {.rows = of_classes,
            .columns = columns,
            .depth = count,
            .left_transposed = true,
            .right_transposed = false,
            .dtype = dtype,
            .wide_result = true,
            .adds_to_result = !is_first,
            .left_stride = in_elements(stride)};
  }

  Bytes logit_bytes() const { return Bytes(chunk * stride * 4); }

  // body(first row, rows) for each chunk
  template <typename Body>
  void for_each_chunk(const Body& body) const {
    for (std::int64_t first = 0; first < rows; first += chunk) body(first, std::min(chunk, rows - first));
  }
  // body(first class, classes) for each slice
  template <typename Body>
  void for_each_slice(const Body& body) const {
    for (std::int64_t first = 0; first < even; first += slice) body(first, std::min(slice, even - first));
    if (rest() > 0) body(even, rest());
  }
  // body(first class, classes) for the two products over all classes
  template <typename Body>
  void for_each_part(const Body& body) const {
    body(std::int64_t{0}, even);
    if (rest() > 0) body(even, rest());
  }
  // A sum that could be made in the gradient itself needs no workspace.
  bool sums_in_place() const { return dtype == DType::f32 && !adds; }

  struct Pieces {
    RowLoss* losses;
    float* logits;
    float* input;      // a chunk of the input's gradient, before it is rounded; nullptr: none
    float* sum;        // of the weight's gradient; nullptr: none
    std::byte* fresh;  // a slice of it that is added to a sum; nullptr: none
  };
  Pieces cut(Cutter& cutter) const {
    Pieces pieces{
        .losses = cutter.cut<RowLoss>(rows),
        .logits = cutter.cut<float>(std::max(chunk * stride, gradient == WeightGradient::twice ? rows * slice_stride : 0)),
        .input = nullptr,
        .sum = nullptr,
        .fresh = nullptr};
    if (gradient != WeightGradient::none && rounds_input_gradient()) pieces.input = cutter.cut<float>(chunk * columns);
    if (gradient == WeightGradient::summed && !sums_in_place()) pieces.sum = cutter.cut<float>(classes * columns);
    if (gradient != WeightGradient::summed && adds) pieces.fresh = cutter.cut<std::byte>(slice * columns * element_bytes);
    return pieces;
  }

  // What the library wants for all products.
  Bytes library(CudaDevice& device) const {
    ProductWorkspace workspace(device);
    for_each_chunk([&](std::int64_t first, std::int64_t count) {
      if (first != 0 && count == chunk && gradient != WeightGradient::summed) return;  // as the first
      for_each_part([&](std::int64_t /*first_class*/, std::int64_t of_classes) {
        workspace.plan(logits(count, of_classes));
        if (gradient == WeightGradient::summed) workspace.plan(weight_gradient_term(count, of_classes, first == 0));
      });
      if (gradient == WeightGradient::none) return;
      workspace.plan(input_gradient(count));
      if (rest() > 0) workspace.plan(input_gradient_of_rest(count));
    });
    if (gradient == WeightGradient::at_once || gradient == WeightGradient::twice) {
      for_each_slice([&](std::int64_t /*first*/, std::int64_t count) {
        workspace.plan(weight_gradient(count));
        if (gradient == WeightGradient::twice) workspace.plan(logits_of_slice(count));
      });
    }
    return workspace.bytes();
  }

 private:
  MatrixProblem logits_of(std::int64_t count, std::int64_t of_classes, std::int64_t result_stride) const {
    return {.rows = count,
            .columns = of_classes,
            .depth = columns,
            .left_transposed = false,
            .right_transposed = true,
            .dtype = dtype,
            .wide_result = true,
            .result_stride = result_stride};
  }
  MatrixProblem input_gradient_of(std::int64_t count, std::int64_t of_classes, bool adds_to_result) const {
    return {.rows = count,
            .columns = columns,
            .depth = of_classes,
            .left_transposed = false,
            .right_transposed = false,
            .dtype = dtype,
            .wide_result = rest() > 0,
            .adds_to_result = adds_to_result,
            .left_stride = in_elements(stride)};
  }
  // Floats as elements of the gradients that lie in their place.
  std::int64_t in_elements(std::int64_t floats) const { return floats * 4 / element_bytes; }
};

constexpr ElementList kInputs{Element::real, Element::real, Element::labels, Element::scalars};

// Without and with weights of the rows: what follows these in a step that accumulates is a real number.
constexpr Signature kLoss{.inputs = kInputs, .outputs = {Element::metrics}};
constexpr Signature kWeightedLoss{.inputs = {Element::real, Element::real, Element::labels, Element::scalars, Element::statistic},
                                  .outputs = {Element::metrics}};
constexpr Signature kStep{.inputs = kInputs, .outputs = {Element::real, Element::real, Element::metrics}};
constexpr Signature kWeightedStep{.inputs = {Element::real, Element::real, Element::labels, Element::scalars, Element::statistic},
                                  .outputs = {Element::real, Element::real, Element::metrics}};

bool has_row_weights(std::size_t inputs, const Attributes& attributes) { return inputs - (accumulates(attributes) ? 1 : 0) == 5; }

template <const Variant& V>
KernelMatch match(const KernelQuery& query) {
  const bool is_loss = V.gradient == WeightGradient::none;
  const bool weighted = has_row_weights(query.inputs.size(), query.attributes);
  const Signature& signature = is_loss ? (weighted ? kWeightedLoss : kLoss) : (weighted ? kWeightedStep : kStep);
  if (auto reason = refusal(signature, query)) return Refuse{*reason};
  if (query.device == nullptr) return Refuse{"there is no device to ask"};
  const Division division(V, query.inputs[0], query.inputs[1], accumulates(query.attributes));
  if (V.rows != 0 && division.rows <= V.rows) return Refuse{fmt::format("{} rows are not more than a chunk", division.rows)};
  if (division.chunk > kFewestRows && division.logit_bytes() > kMostLogits) {
    return Refuse{fmt::format("the logits of {} rows take {}; {} at a time are as fast", division.chunk,
                              format_bytes(division.logit_bytes()), format_bytes(kMostLogits))};
  }
  CudaDevice& device = cuda_device(query.device);
  Cutter cutter;
  division.cut(cutter);
  const bool tf32 = division.dtype == DType::f32 && device.options().allow_tf32;
  return Accept{.workspace = cutter.used() + division.library(device),
                .numerics = tf32 ? V.numerics_with_tf32 : V.numerics,
                .slowdown = V.slowdown};
}

ClassifierRows rows_of(const Call& call, const Division& division) {
  return {.labels = call.in<std::int32_t>(2),
          .weights = has_row_weights(call.input_count(), call.attributes()) ? call.in<float>(4) : nullptr,
          .scalars = call.scalars(3),
          .smoothing = call.attributes().real("label_smoothing"),
          .rows = static_cast<std::uint32_t>(division.rows),
          .classes = static_cast<std::uint32_t>(division.classes),
          .rows_per_example = static_cast<std::uint32_t>(rows_per_example(call.attributes()))};
}

// Appends a variant's kernels to a chain.
template <typename T>
class StepBinder {
 public:
  StepBinder(const Call& call, const Division& division)
      : call_(call), division_(division), rows_(rows_of(call, division)), x_(call.in<T>(0)), weight_(call.in<T>(1)) {
    Cutter cutter(call.workspace_bytes());
    pieces_ = division.cut(cutter);
    library_ = call.workspace_bytes().subspan(static_cast<std::size_t>(cutter.used().count()));
  }

  std::unique_ptr<BoundKernel> bind() {
    division_.for_each_chunk([&](std::int64_t first, std::int64_t count) { add_chunk(first, count); });
    if (division_.gradient == WeightGradient::at_once) {
      division_.for_each_slice(
          [&](std::int64_t first, std::int64_t count) { add_weight_slice(gradients() + first, first, count); });
    }
    if (division_.gradient == WeightGradient::summed && !division_.sums_in_place()) add_rounding();
    if (division_.gradient == WeightGradient::twice) {
      division_.for_each_slice([&](std::int64_t first, std::int64_t count) { add_slice(first, count); });
    }
    auto* metrics = call_.out<Metrics>(division_.gradient == WeightGradient::none ? 0 : 2);
    add([losses = pieces_.losses, rows = rows_, metrics](cudaStream_t stream) {
      launch::classifier_metrics(stream, losses, rows, metrics);
    });
    return std::move(chain_);
  }

 private:
  template <typename F>
  void add(F enqueue) {
    chain_->add(call_.launch(std::move(enqueue)));
  }
  template <typename R>
  void add_product(const MatrixProblem& problem, const T* left, const T* right, R* result) {
    chain_->add(bind_product<T, R>(call_, problem, left, right, result, library_));
  }

  const T* gradients() const { return reinterpret_cast<const T*>(pieces_.logits); }
  LogitRows logit_rows(std::int64_t first, std::int64_t count, std::int64_t stride) const {
    return {.logits = pieces_.logits,
            .first_row = static_cast<std::uint32_t>(first),
            .count = static_cast<std::uint32_t>(count),
            .stride = static_cast<std::uint32_t>(stride)};
  }

  void add_chunk(std::int64_t first, std::int64_t count) {
    const T* x = x_ + first * division_.columns;
    division_.for_each_part([&](std::int64_t first_class, std::int64_t classes) {
      add_product<float>(division_.logits(count, classes), x, weight_ + first_class * division_.columns,
                         pieces_.logits + first_class);
    });
    const LogitRows logits = logit_rows(first, count, division_.stride);
    if (division_.gradient == WeightGradient::none) {
      add([logits, rows = rows_, losses = pieces_.losses](cudaStream_t stream) {
        launch::classifier_losses(stream, logits, rows, losses);
      });
      return;
    }
    add([logits, rows = rows_, losses = pieces_.losses](cudaStream_t stream) {
      launch::classifier_losses_and_gradients<T>(stream, logits, rows, losses);
    });
    add_input_gradient(count, call_.out<T>(1) + first * division_.columns);
    if (division_.gradient != WeightGradient::summed) return;
    float* sum = pieces_.sum;
    if constexpr (std::is_same_v<T, float>) {
      if (division_.sums_in_place()) sum = call_.out<float>(0);
    }
    division_.for_each_part([&](std::int64_t first_class, std::int64_t classes) {
      add_product<float>(division_.weight_gradient_term(count, classes, first == 0), gradients() + first_class, x,
                         sum + first_class * division_.columns);
    });
  }

  // Of a chunk of rows.
  void add_input_gradient(std::int64_t count, T* result) {
    if (division_.rest() == 0) return add_product<T>(division_.input_gradient(count), gradients(), weight_, result);
    float* wide = pieces_.input;
    if constexpr (std::is_same_v<T, float>) wide = result;
    add_product<float>(division_.input_gradient(count), gradients(), weight_, wide);
    add_product<float>(division_.input_gradient_of_rest(count), gradients() + division_.even,
                       weight_ + division_.even * division_.columns, wide);
    if constexpr (!std::is_same_v<T, float>) {
      add([wide, result, elements = count * division_.columns](cudaStream_t stream) {
        launch::round_sum<T>(stream, wide, nullptr, result, elements);
      });
    }
  }

  // Of all rows: `from` the gradients of the slice's logits.
  void add_weight_slice(const T* from, std::int64_t first, std::int64_t count) {
    const std::int64_t begin = first * division_.columns;
    T* result = call_.out<T>(0) + begin;
    T* fresh = division_.adds ? reinterpret_cast<T*>(pieces_.fresh) : result;
    add_product<T>(division_.weight_gradient(count), from, x_, fresh);
    if (!division_.adds) return;
    add([sum = call_.addend<T>() + begin, fresh, result, elements = count * division_.columns](cudaStream_t stream) {
      launch::add<T>(stream, sum, fresh, result, elements);
    });
  }

  void add_rounding() {
    add([sum = pieces_.sum, addend = call_.addend<T>(), result = call_.out<T>(0),
         elements = division_.classes * division_.columns](cudaStream_t stream) {
      launch::round_sum<T>(stream, sum, addend, result, elements);
    });
  }

  void add_slice(std::int64_t first, std::int64_t count) {
    add_product<float>(division_.logits_of_slice(count), x_, weight_ + first * division_.columns, pieces_.logits);
    add([logits = logit_rows(0, division_.rows, division_.slice_stride), first_class = static_cast<std::uint32_t>(first),
         classes = static_cast<std::uint32_t>(count), rows = rows_, losses = pieces_.losses](cudaStream_t stream) {
      launch::classifier_gradients<T>(stream, logits, first_class, classes, rows, losses);
    });
    add_weight_slice(gradients(), first, count);
  }

  const Call& call_;
  const Division& division_;
  ClassifierRows rows_;
  const T* x_;
  const T* weight_;
  Division::Pieces pieces_{};
  std::span<std::byte> library_;
  std::unique_ptr<KernelChain> chain_ = std::make_unique<KernelChain>();
};

template <const Variant& V, typename T>
std::unique_ptr<BoundKernel> bind(const Call& call) {
  const Division division(V, call.input_type(0), call.input_type(1), accumulates(call.attributes()));
  return StepBinder<T>(call, division).bind();
}

template <const Variant& V>
consteval KernelDef define_variant() {
  KernelDef kernel = define<[]<typename T>() { return bind<V, T>; }, kStep>(V.name, V.op);
  kernel.match = match<V>;
  return kernel;
}

constexpr std::string_view kLossOp = "linear_cross_entropy";
constexpr std::string_view kStepOp = "linear_cross_entropy_step";

constexpr Variant loss_variant(std::string_view name, std::string_view numerics, std::string_view with_tf32, std::int64_t rows,
                               double slowdown) {
  return {name, kLossOp, numerics, with_tf32, WeightGradient::none, rows, slowdown};
}

// SNUG_LOSS(rows, slowdown): name, op and numerics of the variant with chunks of so many rows.
#define SNUG_LOSS(rows, slowdown) \
  constexpr Variant kLoss##rows = \
      loss_variant("cublaslt_linear_cross_entropy_" #rows, "cublas_" #rows, "cublas-tf32_" #rows, rows, slowdown)
#define SNUG_STEP(how, rows, slowdown)                                                                                      \
  constexpr Variant kStep_##how##rows {                                                                                     \
    "cublaslt_linear_cross_entropy_step_" #how "_" #rows, kStepOp, "cublas_" #how "_" #rows, "cublas-tf32_" #how "_" #rows, \
        WeightGradient::how, rows, slowdown                                                                                 \
  }

constexpr Variant kWholeLoss = loss_variant("cublaslt_linear_cross_entropy", "cublas", "cublas-tf32", 0, 1);
constexpr Variant kWholeStep{
    "cublaslt_linear_cross_entropy_step", kStepOp, "cublas", "cublas-tf32", WeightGradient::at_once, 0, 1};
SNUG_LOSS(4096, 1.02);
SNUG_LOSS(1024, 1.05);
SNUG_LOSS(256, 1.2);
SNUG_LOSS(128, 1.5);
SNUG_STEP(summed, 4096, 1.02);
SNUG_STEP(summed, 2048, 1.04);
SNUG_STEP(summed, 1024, 1.08);
SNUG_STEP(twice, 2048, 1.35);
SNUG_STEP(twice, 1024, 1.4);
SNUG_STEP(twice, 512, 1.5);
SNUG_STEP(twice, 256, 1.7);
SNUG_STEP(twice, 128, 2.2);

}  // namespace

constinit const KernelDef linear_cross_entropy = define_variant<kWholeLoss>();
constinit const KernelDef linear_cross_entropy_4096 = define_variant<kLoss4096>();
constinit const KernelDef linear_cross_entropy_1024 = define_variant<kLoss1024>();
constinit const KernelDef linear_cross_entropy_256 = define_variant<kLoss256>();
constinit const KernelDef linear_cross_entropy_128 = define_variant<kLoss128>();
constinit const KernelDef linear_cross_entropy_step = define_variant<kWholeStep>();
constinit const KernelDef linear_cross_entropy_step_summed_4096 = define_variant<kStep_summed4096>();
constinit const KernelDef linear_cross_entropy_step_summed_2048 = define_variant<kStep_summed2048>();
constinit const KernelDef linear_cross_entropy_step_summed_1024 = define_variant<kStep_summed1024>();
constinit const KernelDef linear_cross_entropy_step_twice_2048 = define_variant<kStep_twice2048>();
constinit const KernelDef linear_cross_entropy_step_twice_1024 = define_variant<kStep_twice1024>();
constinit const KernelDef linear_cross_entropy_step_twice_512 = define_variant<kStep_twice512>();
constinit const KernelDef linear_cross_entropy_step_twice_256 = define_variant<kStep_twice256>();
constinit const KernelDef linear_cross_entropy_step_twice_128 = define_variant<kStep_twice128>();

}  // namespace snug::backends::cuda
