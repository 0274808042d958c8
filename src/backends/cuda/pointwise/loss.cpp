#include "backends/cuda/pointwise/loss.h"

#include "backends/cuda/call.h"
#include "backends/cuda/kernels.h"
#include "ir/example_rows.h"

namespace snug::backends::cuda {

namespace {

launch::LossRows rows_of(const Call& call) {
  const Shape& logits = call.input_shape(0);
  return {.labels = call.in<std::int32_t>(1),
          .weights = call.input_count() == 4 ? call.in<float>(3) : nullptr,
          .scalars = call.scalars(2),
          .smoothing = call.attributes().real("label_smoothing"),
          .rows = static_cast<std::uint32_t>(logits[0]),
          .classes = static_cast<std::uint32_t>(logits[1]),
          .rows_per_example = static_cast<std::uint32_t>(rows_per_example(call.attributes()))};
}

template <typename T>
std::unique_ptr<BoundKernel> bind_loss(const Call& call) {
  return call.launch([logits = call.in<T>(0), rows = rows_of(call), metrics = call.out<Metrics>(0)](cudaStream_t stream) {
    launch::softmax_cross_entropy<T>(stream, logits, rows, metrics);
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_grad(const Call& call) {
  return call.launch([logits = call.in<T>(0), rows = rows_of(call), gradient = call.out<T>(0)](cudaStream_t stream) {
    launch::softmax_cross_entropy_grad<T>(stream, logits, rows, gradient);
  });
}

constexpr Signature kLoss{.inputs = {Element::real, Element::labels, Element::scalars, Element::statistic},
                          .outputs = {Element::metrics}};
constexpr Signature kGrad{.inputs = {Element::real, Element::labels, Element::scalars, Element::statistic}};

}  // namespace

constinit const KernelDef softmax_cross_entropy =
    define<[]<typename T>() { return bind_loss<T>; }, kLoss>("cuda_softmax_cross_entropy");
constinit const KernelDef softmax_cross_entropy_grad =
    define<[]<typename T>() { return bind_grad<T>; }, kGrad>("cuda_softmax_cross_entropy_grad");

}  // namespace snug::backends::cuda
