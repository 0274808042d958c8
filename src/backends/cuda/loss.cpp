#include "backends/cuda/loss.h"

#include "backends/cuda/call.h"
#include "backends/cuda/kernels.h"

namespace snug::backends::cuda {

namespace {

struct Logits {
  std::uint32_t rows, classes;

  explicit Logits(const Shape& shape)
      : rows(static_cast<std::uint32_t>(shape[0])), classes(static_cast<std::uint32_t>(shape[1])) {}
};

template <typename T>
std::unique_ptr<BoundKernel> bind_loss(const Call& call) {
  return call.launch([logits = call.in<T>(0), labels = call.in<std::int32_t>(1), scalars = call.scalars(2),
                      smoothing = call.attributes().real("label_smoothing"), metrics = call.out<Metrics>(0),
                      shape = Logits(call.input_shape(0))](cudaStream_t stream) {
    launch::softmax_cross_entropy<T>(stream, logits, labels, scalars, smoothing, metrics, shape.rows, shape.classes);
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_grad(const Call& call) {
  return call.launch([logits = call.in<T>(0), labels = call.in<std::int32_t>(1), scalars = call.scalars(2),
                      smoothing = call.attributes().real("label_smoothing"), gradient = call.out<T>(0),
                      shape = Logits(call.input_shape(0))](cudaStream_t stream) {
    launch::softmax_cross_entropy_grad<T>(stream, logits, labels, scalars, smoothing, gradient, shape.rows, shape.classes);
  });
}

constexpr Signature kLoss{.inputs = {Element::real, Element::labels, Element::scalars}, .outputs = {Element::metrics}};
constexpr Signature kGrad{.inputs = {Element::real, Element::labels, Element::scalars}};

}  // namespace

constinit const KernelDef softmax_cross_entropy =
    define<[]<typename T>() { return bind_loss<T>; }, kLoss>("cuda_softmax_cross_entropy");
constinit const KernelDef softmax_cross_entropy_grad =
    define<[]<typename T>() { return bind_grad<T>; }, kGrad>("cuda_softmax_cross_entropy_grad");

}  // namespace snug::backends::cuda
