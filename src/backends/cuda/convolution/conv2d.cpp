#include "backends/cuda/call.h"
#include "backends/cuda/convolution/convolutions.h"
#include "backends/cuda/device/library_workspace.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/linear/with_bias.h"

namespace snug::backends::cuda {

namespace {

constexpr Signature kImages{.layouts = Layouts::images};

ConvolutionProblem problem_of(ConvolutionKind kind, const Attributes& attributes, const Type& first, const Type& second,
                              const Type& output) {
  // (x, w) -> y;  (dy, w) -> dx;  (dy, x) -> dw
  const Shape& input = kind == ConvolutionKind::forward      ? first.shape
                       : kind == ConvolutionKind::grad_input ? output.shape
                                                             : second.shape;
  const Shape& weight = kind == ConvolutionKind::grad_weight ? output.shape : second.shape;
  return {.kind = kind, .geometry = ops::Conv2dGeometry::from(input, weight, attributes), .dtype = output.dtype};
}

template <ConvolutionKind Kind>
KernelMatch match(const KernelQuery& query) {
  if (auto reason = refusal(kImages, query)) return Refuse{*reason};
  if (accumulates(query.attributes)) return Refuse{"cuDNN would round the sum once where a separate addition rounds twice"};
  if (query.device == nullptr) return Refuse{"there is no device to ask"};
  CudaDevice& device = cuda_device(query.device);
  const auto& choice =
      device.convolutions().choose(problem_of(Kind, query.attributes, query.inputs[0], query.inputs[1], query.outputs[0]));
  if (!choice.plan) return Refuse{choice.refusal};
  return Accept{.workspace = library_workspace(choice.workspace),
                .numerics = query.outputs[0].dtype == DType::f32 && device.options().allow_tf32 ? "cudnn-tf32" : "cudnn"};
}

const Convolutions::Choice& choice_of(ConvolutionKind kind, const Call& call) {
  return call.device().convolutions().choose(
      problem_of(kind, call.attributes(), call.input_type(0), call.input_type(1), call.output_type(0)));
}

void* pointer(const void* address) { return const_cast<void*>(address); }

template <typename T>
std::unique_ptr<BoundKernel> bind_forward(const Call& call) {
  auto convolution = call.device().convolutions().bind(
      choice_of(ConvolutionKind::forward, call),
      {.x = pointer(call.in<T>(0)), .weight = pointer(call.in<T>(1)), .y = call.out<T>(0)}, call.workspace_bytes());
  if (call.input_count() < 3) return convolution;
  return std::make_unique<WithBias<T>>(std::move(convolution), call);
}

template <typename T>
std::unique_ptr<BoundKernel> bind_grad_input(const Call& call) {
  return call.device().convolutions().bind(choice_of(ConvolutionKind::grad_input, call),
                                           {.x = call.out<T>(0), .weight = pointer(call.in<T>(1)), .y = pointer(call.in<T>(0))},
                                           call.workspace_bytes());
}

template <typename T>
std::unique_ptr<BoundKernel> bind_grad_weight(const Call& call) {
  return call.device().convolutions().bind(choice_of(ConvolutionKind::grad_weight, call),
                                           {.x = pointer(call.in<T>(1)), .weight = call.out<T>(0), .y = pointer(call.in<T>(0))},
                                           call.workspace_bytes());
}

template <ConvolutionKind Kind, auto BinderOf>
consteval KernelDef define_cudnn(std::string_view name) {
  KernelDef kernel = define<BinderOf>(name);
  kernel.match = match<Kind>;
  return kernel;
}

}  // namespace

constinit const KernelDef cudnn_conv2d =
    define_cudnn<ConvolutionKind::forward, []<typename T>() { return bind_forward<T>; }>("cudnn_conv2d");
constinit const KernelDef cudnn_conv2d_grad_input =
    define_cudnn<ConvolutionKind::grad_input, []<typename T>() { return bind_grad_input<T>; }>("cudnn_conv2d_grad_input");
constinit const KernelDef cudnn_conv2d_grad_weight =
    define_cudnn<ConvolutionKind::grad_weight, []<typename T>() { return bind_grad_weight<T>; }>("cudnn_conv2d_grad_weight");

}  // namespace snug::backends::cuda
