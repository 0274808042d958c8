#include "backends/cuda/convolution/gemm_convolution.h"

#include <optional>

#include "backends/cuda/call.h"
#include "backends/cuda/convolution/conv_shape.h"
#include "backends/cuda/kernels.h"

namespace snug::backends::cuda {

namespace {

constexpr Signature kImages{.layouts = Layouts::images};

constexpr std::string_view kNumerics = "cuda-gemm";

// Nothing when these kernels take it.
std::optional<std::string> refusal_of(const KernelQuery& query) {
  if (auto reason = refusal(kImages, query)) return reason;
  if (query.outputs[0].dtype != DType::f32) return "tensor cores are faster for 16 bits";
  if (query.device == nullptr) return "there is no device to ask";
  if (cuda_device(query.device).options().allow_tf32) return "tensor cores are faster where TF32 is allowed";
  return std::nullopt;
}

Refuse grouped() { return {"only convolutions of one group are taken here"}; }

KernelMatch match_forward(const KernelQuery& query) {
  if (auto reason = refusal_of(query)) return Refuse{*reason};
  if (conv_shape(query.inputs[0].shape, query.inputs[1].shape, query.attributes).groups != 1) return grouped();
  return Accept{.workspace = {}, .numerics = kNumerics};
}

KernelMatch match_grad_input(const KernelQuery& query) {
  if (auto reason = refusal_of(query)) return Refuse{*reason};
  const launch::ConvShape shape = conv_shape(query.outputs[0].shape, query.inputs[1].shape, query.attributes);
  if (shape.groups != 1) return grouped();
  if ((shape.stride_height != 1 && shape.dilation_height != 1) || (shape.stride_width != 1 && shape.dilation_width != 1))
    return Refuse{"stride and dilation are not taken together here"};
  return Accept{.workspace = {}, .numerics = kNumerics};
}

KernelMatch match_grad_weight(const KernelQuery& query) {
  if (auto reason = refusal_of(query)) return Refuse{*reason};
  const launch::ConvShape shape = conv_shape(query.inputs[1].shape, query.outputs[0].shape, query.attributes);
  if (shape.groups != 1) return grouped();
  const auto limit = static_cast<std::size_t>(cuda_device(query.device).options().workspace_limit.count());
  const std::size_t scratch = launch::gemm_scratch(shape, launch::gemm_splits(shape, limit));
  return Accept{.workspace = Bytes(static_cast<std::int64_t>(scratch)), .numerics = kNumerics};
}

std::unique_ptr<BoundKernel> bind_forward(const Call& call) {
  const launch::ConvShape shape = conv_shape(call.input_shape(0), call.input_shape(1), call.attributes());
  const auto tile = launch::gemm_tile(std::int64_t{shape.batch} * shape.out_height * shape.out_width, shape.out_channels);
  return call.launch([x = call.in<float>(0), weight = call.in<float>(1),
                      bias = call.input_count() == 3 ? call.in<float>(2) : nullptr, y = call.out<float>(0), shape,
                      tile](cudaStream_t stream) { launch::gemm_conv2d(stream, x, weight, bias, y, shape, tile); });
}

std::unique_ptr<BoundKernel> bind_grad_input(const Call& call) {
  const launch::ConvShape shape = conv_shape(call.output_shape(0), call.input_shape(1), call.attributes());
  const auto tile = launch::gemm_tile(std::int64_t{shape.batch} * shape.in_height * shape.in_width, shape.in_channels);
  return call.launch(
      [dy = call.in<float>(0), weight = call.in<float>(1), addend = call.addend<float>(), dx = call.out<float>(0), shape,
       tile](cudaStream_t stream) { launch::gemm_conv2d_grad_input(stream, dy, weight, addend, dx, shape, tile); });
}

// The planned workspace decides how the sum is split: a saved plan gives the same bits under any later limit.
std::unique_ptr<BoundKernel> bind_grad_weight(const Call& call) {
  const launch::ConvShape shape = conv_shape(call.input_shape(1), call.output_shape(0), call.attributes());
  return call.launch([dy = call.in<float>(0), x = call.in<float>(1), addend = call.addend<float>(), dw = call.out<float>(0),
                      partial = call.workspace<float>(), shape,
                      splits = launch::gemm_splits(shape, call.workspace_bytes().size())](cudaStream_t stream) {
    launch::gemm_conv2d_grad_weight(stream, dy, x, addend, dw, partial, shape, splits);
  });
}

using Match = KernelMatch (*)(const KernelQuery&);

// Never bound for 16 bits: match refuses them.
template <Binder F32>
consteval KernelDef define_gemm(std::string_view name, std::string_view op, Match match) {
  KernelDef kernel = define<F32>(name, op);
  kernel.match = match;
  return kernel;
}

}  // namespace

constinit const KernelDef gemm_conv2d = define_gemm<bind_forward>("cuda_gemm_conv2d", "conv2d", match_forward);
constinit const KernelDef gemm_conv2d_grad_input =
    define_gemm<bind_grad_input>("cuda_gemm_conv2d_grad_input", "conv2d_grad_input", match_grad_input);
constinit const KernelDef gemm_conv2d_grad_weight =
    define_gemm<bind_grad_weight>("cuda_gemm_conv2d_grad_weight", "conv2d_grad_weight", match_grad_weight);

}  // namespace snug::backends::cuda
