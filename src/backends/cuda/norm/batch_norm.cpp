#include "backends/cuda/norm/batch_norm.h"

#include "backends/cuda/call.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/norm/row_shape.h"
#include "backends/cuda/norm/sums.h"
#include "base/error.h"
#include "ir/example_rows.h"
#include "ops/batch_norm.h"

namespace snug::backends::cuda {

namespace {

using ops::BatchNormGeometry;

float epsilon_of(const Call& call) { return static_cast<float>(call.attributes().real("epsilon")); }

launch::Statistics statistics_of(const Call& call, std::size_t mean, std::size_t variance) {
  return {.mean = call.in<float>(mean),
          .variance = call.in<float>(variance),
          .epsilon = epsilon_of(call),
          .fixed = call.input_shape(mean).rank() == 1};
}

template <typename T>
std::unique_ptr<BoundKernel> bind_statistics(const Call& call) {
  const RowShape shape = rows_of(BatchNormGeometry::from(call.input_shape(0), call.attributes()));
  return call.launch([x = call.in<T>(0), scalars = call.scalars(1), mean = call.out<float>(0), variance = call.out<float>(1),
                      partial = call.workspace<float>(), shape, sums = ColumnSums::of(shape, sizeof(T))](cudaStream_t stream) {
    launch::batch_norm_statistics<T>(stream, x, scalars, mean, variance, shape, sums, partial);
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_apply(const Call& call) {
  const RowShape shape = rows_of(BatchNormGeometry::from(call.input_shape(0), call.attributes()));
  const launch::ApplyOperands<T> operands{.x = call.in<T>(0),
                                          .statistics = statistics_of(call, 1, 2),
                                          .weight = call.in<float>(3),
                                          .bias = call.in<float>(4),
                                          .y = call.out<T>(0),
                                          .relu = ops::batch_norm_with_relu(call.attributes())};
  return call.launch([operands, shape, tiling = ColumnTiling::of(shape.channels, sizeof(T))](cudaStream_t stream) {
    launch::batch_norm_apply<T>(stream, operands, shape, tiling);
  });
}

launch::FusedRelu fused_relu(const Call& call, std::size_t weight, std::size_t bias) {
  if (!ops::batch_norm_with_relu(call.attributes())) return {.weight = nullptr, .bias = nullptr};
  return {.weight = call.in<float>(weight), .bias = call.in<float>(bias)};
}

std::unique_ptr<BoundKernel> bind_running(const Call& call) {
  const BatchNormGeometry g{.batch = call.attributes().integer("batch"),
                            .channels = call.input_shape(0)[1],
                            .pixels = call.attributes().integer("pixels"),
                            .group_size = call.attributes().integer("group_size"),
                            .groups = call.input_shape(0)[0],
                            .rows_per_example = rows_per_example(call.attributes())};
  const launch::RunningOperands operands{.mean = call.in<float>(0),
                                         .variance = call.in<float>(1),
                                         .old_mean = call.in<float>(2),
                                         .old_variance = call.in<float>(3),
                                         .running_mean = call.out<float>(0),
                                         .running_variance = call.out<float>(1),
                                         .scalars = call.scalars(4)};
  return call.launch([operands, momentum = call.attributes().real("momentum"), shape = rows_of(g)](cudaStream_t stream) {
    launch::batch_norm_running(stream, operands, momentum, shape);
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_grad_reduce(const Call& call) {
  const RowShape shape = rows_of(BatchNormGeometry::from(call.input_shape(1), call.attributes()));
  const launch::GradReduceOperands<T> operands{
      .dy = call.in<T>(0), .x = call.in<T>(1), .statistics = statistics_of(call, 2, 3), .relu = fused_relu(call, 4, 5)};
  return call.launch([operands, weight_sums = call.out<float>(0), bias_sums = call.out<float>(1),
                      partial = call.workspace<float>(), shape, sums = ColumnSums::of(shape, sizeof(T))](cudaStream_t stream) {
    launch::batch_norm_grad_reduce<T>(stream, operands, weight_sums, bias_sums, shape, sums, partial);
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_grad_input(const Call& call) {
  const RowShape shape = rows_of(BatchNormGeometry::from(call.input_shape(1), call.attributes()));
  const launch::GradInputOperands<T> operands{.dy = call.in<T>(0),
                                              .x = call.in<T>(1),
                                              .statistics = statistics_of(call, 2, 3),
                                              .weight = call.in<float>(4),
                                              .weight_sums = call.in<float>(5),
                                              .bias_sums = call.in<float>(6),
                                              .relu = fused_relu(call, 4, 8),
                                              .scalars = call.scalars(7),
                                              .dx = call.out<T>(0),
                                              .addend = call.addend<T>()};
  return call.launch([operands, shape, tiling = ColumnTiling::of(shape.channels, sizeof(T))](cudaStream_t stream) {
    launch::batch_norm_grad_input<T>(stream, operands, shape, tiling);
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_grad_fixed(const Call& call) {
  const RowShape shape = rows_of(call.input_shape(0));
  return call.launch([dy = call.in<T>(0), variance = call.in<float>(1), weight = call.in<float>(2), epsilon = epsilon_of(call),
                      dx = call.out<T>(0), addend = call.addend<T>(), shape,
                      tiling = ColumnTiling::of(shape.channels, sizeof(T))](cudaStream_t stream) {
    launch::batch_norm_grad_fixed<T>(stream, dy, variance, weight, epsilon, dx, addend, shape, tiling);
  });
}

// Up to this many rows one thread per channel is enough.
constexpr std::uint32_t kFewRows = 32;

template <typename T>
std::unique_ptr<BoundKernel> bind_sum_to_channels(const Call& call) {
  const RowShape shape = rows_of(call.input_shape(0));
  if (shape.rows_of_full_group() <= kFewRows) {
    return call.launch([x = call.in<T>(0), y = call.out<T>(0), addend = call.addend<T>(), shape](cudaStream_t stream) {
      launch::sum_few_rows<T>(stream, x, y, addend, shape.rows_of_full_group(), shape.channels);
    });
  }
  return call.launch([x = call.in<T>(0), y = call.out<T>(0), addend = call.addend<T>(), partial = call.workspace<float>(), shape,
                      sums = ColumnSums::of(shape, sizeof(T))](cudaStream_t stream) {
    launch::sum_to_channels<T>(stream, x, y, addend, shape, sums, partial);
  });
}

Bytes workspace_of_sums(const RowShape& shape, const Type& x) {
  return Bytes(ColumnSums::of(shape, element_bytes(x)).workspace_bytes(shape));
}

Bytes workspace_of_statistics(const KernelQuery& query) {
  return workspace_of_sums(rows_of(BatchNormGeometry::from(query.inputs[0].shape, query.attributes)), query.inputs[0]);
}

Bytes workspace_of_sum_to_channels(const KernelQuery& query) {
  const RowShape shape = rows_of(query.inputs[0].shape);
  return shape.rows_of_full_group() <= kFewRows ? Bytes(0) : workspace_of_sums(shape, query.inputs[0]);
}

constexpr Element kStat = Element::statistic;
constexpr Signature kImages{.layouts = Layouts::images};
constexpr Signature kStatistics{
    .inputs = {Element::real, Element::scalars}, .outputs = {kStat, kStat}, .layouts = Layouts::images};
constexpr Signature kApply{.inputs = {Element::real, kStat, kStat, kStat, kStat, Element::scalars}, .layouts = Layouts::images};
constexpr Signature kRunning{.inputs = {kStat, kStat, kStat, kStat, Element::scalars}, .outputs = {kStat, kStat}};
constexpr Signature kGradReduce{
    .inputs = {Element::real, Element::real, kStat, kStat, kStat, kStat}, .outputs = {kStat, kStat}, .layouts = Layouts::images};
constexpr Signature kGradInput{.inputs = {Element::real, Element::real, kStat, kStat, kStat, kStat, kStat, Element::scalars},
                               .layouts = Layouts::images};
// With a fused ReLU the bias comes before the value that is added to.
constexpr Signature kGradInputWithRelu{
    .inputs = {Element::real, Element::real, kStat, kStat, kStat, kStat, kStat, Element::scalars, kStat},
    .layouts = Layouts::images};
constexpr Signature kGradFixed{.inputs = {Element::real, kStat, kStat}, .layouts = Layouts::images};

// Groups of examples are one dimension of the launch's blocks.
template <std::size_t Input, Signature Operands, WorkspaceOf Workspace>
KernelMatch match_groups(const KernelQuery& query) {
  const auto g = BatchNormGeometry::from(query.inputs[Input].shape, query.attributes);
  if (g.groups > kMaxGroups)
    return Refuse{fmt::format("{} groups of examples are more than the {} possible here", g.groups, kMaxGroups)};
  return match_operands(Operands, Workspace, query);
}

KernelMatch match_grad_input(const KernelQuery& query) {
  return ops::batch_norm_with_relu(query.attributes) ? match_groups<1, kGradInputWithRelu, no_workspace>(query)
                                                     : match_groups<1, kGradInput, no_workspace>(query);
}

consteval KernelDef define_grad_input() {
  KernelDef kernel = define<[]<typename T>() { return bind_grad_input<T>; }, kGradInput>("cuda_batch_norm_grad_input");
  kernel.match = match_grad_input;
  return kernel;
}

template <std::size_t Input, auto BinderOf, Signature Operands, WorkspaceOf Workspace = no_workspace>
consteval KernelDef define_grouped(std::string_view name) {
  KernelDef kernel = define<BinderOf, Operands, Workspace>(name);
  kernel.match = match_groups<Input, Operands, Workspace>;
  return kernel;
}

}  // namespace

constinit const KernelDef batch_norm_statistics =
    define_grouped<0, []<typename T>() { return bind_statistics<T>; }, kStatistics, workspace_of_statistics>(
        "cuda_batch_norm_statistics");
constinit const KernelDef batch_norm_apply =
    define_grouped<0, []<typename T>() { return bind_apply<T>; }, kApply>("cuda_batch_norm_apply");
constinit const KernelDef batch_norm_running = define<bind_running, kRunning>("cuda_batch_norm_running");
constinit const KernelDef batch_norm_grad_reduce =
    define_grouped<1, []<typename T>() { return bind_grad_reduce<T>; }, kGradReduce, workspace_of_statistics>(
        "cuda_batch_norm_grad_reduce");
constinit const KernelDef batch_norm_grad_input = define_grad_input();
constinit const KernelDef batch_norm_grad_fixed =
    define<[]<typename T>() { return bind_grad_fixed<T>; }, kGradFixed>("cuda_batch_norm_grad_fixed");
constinit const KernelDef sum_to_channels =
    define<[]<typename T>() { return bind_sum_to_channels<T>; }, kImages, workspace_of_sum_to_channels>("cuda_sum_to_channels");

}  // namespace snug::backends::cuda
