#include <vector>

#include <fmt/format.h>

#include "backends/cuda/call.h"
#include "backends/cuda/convolution/conv_shape.h"
#include "backends/cuda/convolution/convolutions.h"
#include "backends/cuda/convolution/gemm_convolution.h"
#include "backends/cuda/device/library_workspace.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/linear/with_bias.h"
#include "backends/cuda/norm/row_shape.h"
#include "backends/cuda/sparse/direct.h"
#include "backends/cuda/sparse/operands.h"

// Convolutions with a weight of the sparse store, two families. Expansion: the weight is made dense in the workspace, in a dense
// weight's layout (rows are output channels, columns are channels-last), for the kernel of a dense model; a weight gradient is
// dense there too and is gathered at the nonzeros. Direct: straight from the nonzeros.

namespace snug::backends::cuda {

namespace {

using Kind = ConvolutionKind;

// For cuDNN, after the dense weight: small, since sparse weights are for saving bytes.
constexpr Bytes kScratchLimit{192 << 10};
// For the sums of the splits of a product in full f32.
constexpr Bytes kGemmScratch{1 << 20};
// Blocks of a direct weight gradient across the columns, at 32 each.
constexpr std::int64_t kMostColumns = std::int64_t{65535} * 32;

// (x, values, columns, rows, bias?) -> y;  (dy, values, columns, rows) -> dx;  (dy, x, columns, rows, sum?) -> gradient
constexpr Signature kOperands{.inputs = {Element::real, Element::real, Element::packed, Element::index, Element::real},
                              .layouts = Layouts::images};

template <Kind K>
const Shape& image_shape(const KernelQuery& query) {
  return K == Kind::forward ? query.inputs[0].shape : K == Kind::grad_input ? query.outputs[0].shape : query.inputs[1].shape;
}
template <Kind K>
const Shape& image_shape(const Call& call) {
  return K == Kind::forward ? call.input_shape(0) : K == Kind::grad_input ? call.output_shape(0) : call.input_shape(1);
}

Shape weight_shape(const Attributes& attributes) { return ops::SparseSlot::from(attributes).shape; }

// The bytes of the dense weight, which comes first in the workspace.
Bytes dense_bytes(const Attributes& attributes, const Type& type) {
  const Bytes bytes(weight_shape(attributes).elements() * static_cast<std::int64_t>(element_bytes(type)));
  return Bytes((bytes.count() + kAlignment.count() - 1) / kAlignment.count() * kAlignment.count());
}
std::span<std::byte> behind_dense(const Call& call) {
  return call.workspace_bytes().subspan(static_cast<std::size_t>(dense_bytes(call.attributes(), call.output_type(0)).count()));
}

class Sequence final : public BoundKernel {
 public:
  template <typename... Kernels>
  explicit Sequence(Kernels... kernels) {
    (kernels_.push_back(std::move(kernels)), ...);
  }
  void run() override {
    for (const auto& kernel : kernels_) kernel->run();
  }

 private:
  std::vector<std::unique_ptr<BoundKernel>> kernels_;
};

template <typename T>
std::unique_ptr<BoundKernel> expansion(const Call& call) {
  return call.launch([pattern = pattern_of(call, 2), values = call.in<T>(1), dense = call.workspace<T>()](cudaStream_t stream) {
    launch::sparse_expand<T>(stream, pattern, values, dense);
  });
}

// Initializes the gradient of the store, before this tensor's is added.
std::unique_ptr<BoundKernel> beginning(const Call& call) {
  if (accumulates(call.attributes())) return call.launch(BringOver(call, 4, 0));
  return call.launch([to = call.out<std::byte>(0), bytes = static_cast<std::size_t>(call.output_type(0).bytes().count())](
                         cudaStream_t stream) { SNUG_CUDA_CALL(cudaMemsetAsync(to, 0, bytes, stream)); });
}

template <typename T>
std::unique_ptr<BoundKernel> gathering(const Call& call) {
  return call.launch([pattern = pattern_of(call, 2), dense = call.workspace<T>(), gradient = call.out<T>(0)](
                         cudaStream_t stream) { launch::sparse_gather<T>(stream, pattern, dense, gradient); });
}

// ---- cuDNN behind the expansion

ConvolutionProblem problem_of(Kind kind, const Shape& image, const Attributes& attributes, DType dtype) {
  return {.kind = kind,
          .geometry = ops::Conv2dGeometry::from(image, weight_shape(attributes), attributes),
          .dtype = dtype,
          .workspace_limit = kScratchLimit};
}

template <Kind K>
KernelMatch match_cudnn(const KernelQuery& query) {
  if (auto reason = refusal(kOperands, query)) return Refuse{*reason};
  if (query.device == nullptr) return Refuse{"there is no device to ask"};
  CudaDevice& device = cuda_device(query.device);
  const DType dtype = query.outputs[0].dtype;
  if (dtype == DType::f32 && !device.options().allow_tf32) return Refuse{"there are faster kernels for full f32"};
  const auto& choice = device.convolutions().choose(problem_of(K, image_shape<K>(query), query.attributes, dtype));
  if (!choice.plan) return Refuse{choice.refusal};
  if (choice.workspace > kScratchLimit) {
    return Refuse{fmt::format("cuDNN wants {} bytes of workspace, and the limit beside sparse weights is {}",
                              choice.workspace.count(), kScratchLimit.count())};
  }
  return Accept{.workspace = dense_bytes(query.attributes, query.outputs[0]) + library_workspace(choice.workspace),
                .numerics = dtype == DType::f32 ? "cudnn-tf32" : "cudnn"};
}

template <Kind K>
std::unique_ptr<BoundKernel> convolution(const Call& call, const ConvolutionOperands& operands) {
  const auto problem = problem_of(K, image_shape<K>(call), call.attributes(), call.output_type(0).dtype);
  return call.device().convolutions().bind(call.device().convolutions().choose(problem), operands, behind_dense(call));
}

void* pointer(const void* address) { return const_cast<void*>(address); }

template <typename T>
std::unique_ptr<BoundKernel> bind_cudnn_forward(const Call& call) {
  auto product =
      convolution<Kind::forward>(call, {.x = pointer(call.in<T>(0)), .weight = call.workspace<T>(), .y = call.out<T>(0)});
  if (call.input_count() == 5) product = std::make_unique<WithBias<T>>(std::move(product), call, 4);
  return std::make_unique<Sequence>(expansion<T>(call), std::move(product));
}

template <typename T>
std::unique_ptr<BoundKernel> bind_cudnn_grad_input(const Call& call) {
  auto product =
      convolution<Kind::grad_input>(call, {.x = call.out<T>(0), .weight = call.workspace<T>(), .y = pointer(call.in<T>(0))});
  return std::make_unique<Sequence>(expansion<T>(call), std::move(product));
}

template <typename T>
std::unique_ptr<BoundKernel> bind_cudnn_grad_weight(const Call& call) {
  auto product = convolution<Kind::grad_weight>(
      call, {.x = pointer(call.in<T>(1)), .weight = call.workspace<T>(), .y = pointer(call.in<T>(0))});
  return std::make_unique<Sequence>(beginning(call), std::move(product), gathering<T>(call));
}

// ---- the products in full f32 behind the expansion

constexpr std::string_view kGemm = "cuda-gemm";

template <Kind K>
KernelMatch match_gemm(const KernelQuery& query) {
  if (auto reason = refusal(kOperands, query)) return Refuse{*reason};
  if (query.outputs[0].dtype != DType::f32) return Refuse{"tensor cores are faster for 16 bits"};
  if (query.device == nullptr) return Refuse{"there is no device to ask"};
  if (cuda_device(query.device).options().allow_tf32) return Refuse{"tensor cores are faster where TF32 is allowed"};
  const launch::ConvShape shape = conv_shape(image_shape<K>(query), weight_shape(query.attributes), query.attributes);
  Bytes workspace = dense_bytes(query.attributes, query.outputs[0]);
  if (K == Kind::grad_input &&
      ((shape.stride_height != 1 && shape.dilation_height != 1) || (shape.stride_width != 1 && shape.dilation_width != 1)))
    return Refuse{"stride and dilation are not taken together here"};
  if (K == Kind::grad_weight) {
    const auto splits = launch::gemm_splits(shape, static_cast<std::size_t>(kGemmScratch.count()));
    workspace += Bytes(static_cast<std::int64_t>(launch::gemm_scratch(shape, splits)));
  }
  return Accept{.workspace = workspace, .numerics = kGemm};
}

std::unique_ptr<BoundKernel> bind_gemm_forward(const Call& call) {
  const launch::ConvShape shape = conv_shape(call.input_shape(0), weight_shape(call.attributes()), call.attributes());
  const auto tile = launch::gemm_tile(std::int64_t{shape.batch} * shape.out_height * shape.out_width, shape.out_channels);
  return std::make_unique<Sequence>(
      expansion<float>(call),
      call.launch([x = call.in<float>(0), weight = call.workspace<float>(),
                   bias = call.input_count() == 5 ? call.in<float>(4) : nullptr, y = call.out<float>(0), shape,
                   tile](cudaStream_t stream) { launch::gemm_conv2d(stream, x, weight, bias, y, shape, tile); }));
}

std::unique_ptr<BoundKernel> bind_gemm_grad_input(const Call& call) {
  const launch::ConvShape shape = conv_shape(call.output_shape(0), weight_shape(call.attributes()), call.attributes());
  const auto tile = launch::gemm_tile(std::int64_t{shape.batch} * shape.in_height * shape.in_width, shape.in_channels);
  return std::make_unique<Sequence>(
      expansion<float>(call),
      call.launch([dy = call.in<float>(0), weight = call.workspace<float>(), dx = call.out<float>(0), shape,
                   tile](cudaStream_t stream) { launch::gemm_conv2d_grad_input(stream, dy, weight, nullptr, dx, shape, tile); }));
}

// The planned workspace decides how the sum is split, as for dense weights.
std::unique_ptr<BoundKernel> bind_gemm_grad_weight(const Call& call) {
  const launch::ConvShape shape = conv_shape(call.input_shape(1), weight_shape(call.attributes()), call.attributes());
  const std::span<std::byte> scratch = behind_dense(call);
  return std::make_unique<Sequence>(beginning(call),
                                    call.launch([dy = call.in<float>(0), x = call.in<float>(1), dense = call.workspace<float>(),
                                                 partial = reinterpret_cast<float*>(scratch.data()), shape,
                                                 splits = launch::gemm_splits(shape, scratch.size())](cudaStream_t stream) {
                                      launch::gemm_conv2d_grad_weight(stream, dy, x, nullptr, dense, partial, shape, splits);
                                    }),
                                    gathering<float>(call));
}

// ---- direct

template <Kind K>
KernelMatch match_direct(const KernelQuery& query) {
  if (auto reason = refusal(kOperands, query)) return Refuse{*reason};
  if (ops::SparseSlot::from(query.attributes).columns() > kMostColumns)
    return Refuse{fmt::format("a weight has at most {} columns here", kMostColumns)};
  return Accept{.workspace = {}, .numerics = "cuda-direct", .slowdown = K == Kind::grad_weight ? 2.0 : 8.0};
}

template <typename T>
std::unique_ptr<BoundKernel> bind_direct_forward(const Call& call) {
  return call.launch([x = call.in<T>(0), pattern = pattern_of(call, 2), values = call.in<T>(1),
                      bias = call.input_count() == 5 ? call.in<T>(4) : nullptr, y = call.out<T>(0),
                      shape = conv_shape(call.input_shape(0), weight_shape(call.attributes()), call.attributes())](
                         cudaStream_t stream) { launch::sparse_conv2d<T>(stream, x, pattern, values, bias, y, shape); });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_direct_grad_input(const Call& call) {
  return call.launch([dy = call.in<T>(0), pattern = pattern_of(call, 2), values = call.in<T>(1), dx = call.out<T>(0),
                      shape = conv_shape(call.output_shape(0), weight_shape(call.attributes()), call.attributes())](
                         cudaStream_t stream) { launch::sparse_conv2d_grad_input<T>(stream, dy, pattern, values, dx, shape); });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_direct_grad_weight(const Call& call) {
  return std::make_unique<Sequence>(
      beginning(call),
      call.launch([dy = call.in<T>(0), x = call.in<T>(1), pattern = pattern_of(call, 2), gradient = call.out<T>(0),
                   shape = conv_shape(call.input_shape(1), weight_shape(call.attributes()), call.attributes())](
                      cudaStream_t stream) { launch::sparse_conv2d_grad_weight<T>(stream, dy, x, pattern, gradient, shape); }));
}

using Match = KernelMatch (*)(const KernelQuery&);

template <auto BinderOf>
consteval KernelDef define_as(std::string_view name, std::string_view op, Match match) {
  KernelDef kernel = define<BinderOf, kOperands>(name, op);
  kernel.match = match;
  return kernel;
}
// Never bound for 16 bits: match refuses them.
template <Binder F32>
consteval KernelDef define_gemm(std::string_view name, std::string_view op, Match match) {
  return define_as<F32>(name, op, match);
}

}  // namespace

constinit const KernelDef gemm_sparse_conv2d =
    define_gemm<bind_gemm_forward>("cuda_gemm_sparse_conv2d", "sparse_conv2d", match_gemm<Kind::forward>);
constinit const KernelDef gemm_sparse_conv2d_grad_input = define_gemm<bind_gemm_grad_input>(
    "cuda_gemm_sparse_conv2d_grad_input", "sparse_conv2d_grad_input", match_gemm<Kind::grad_input>);
constinit const KernelDef gemm_sparse_conv2d_grad_weight = define_gemm<bind_gemm_grad_weight>(
    "cuda_gemm_sparse_conv2d_grad_weight", "sparse_conv2d_grad_weight", match_gemm<Kind::grad_weight>);

constinit const KernelDef cudnn_sparse_conv2d = define_as<[]<typename T>() { return bind_cudnn_forward<T>; }>(
    "cudnn_sparse_conv2d", "sparse_conv2d", match_cudnn<Kind::forward>);
constinit const KernelDef cudnn_sparse_conv2d_grad_input = define_as<[]<typename T>() { return bind_cudnn_grad_input<T>; }>(
    "cudnn_sparse_conv2d_grad_input", "sparse_conv2d_grad_input", match_cudnn<Kind::grad_input>);
constinit const KernelDef cudnn_sparse_conv2d_grad_weight = define_as<[]<typename T>() { return bind_cudnn_grad_weight<T>; }>(
    "cudnn_sparse_conv2d_grad_weight", "sparse_conv2d_grad_weight", match_cudnn<Kind::grad_weight>);

constinit const KernelDef direct_sparse_conv2d = define_as<[]<typename T>() { return bind_direct_forward<T>; }>(
    "cuda_direct_sparse_conv2d", "sparse_conv2d", match_direct<Kind::forward>);
constinit const KernelDef direct_sparse_conv2d_grad_input = define_as<[]<typename T>() { return bind_direct_grad_input<T>; }>(
    "cuda_direct_sparse_conv2d_grad_input", "sparse_conv2d_grad_input", match_direct<Kind::grad_input>);
constinit const KernelDef direct_sparse_conv2d_grad_weight = define_as<[]<typename T>() { return bind_direct_grad_weight<T>; }>(
    "cuda_direct_sparse_conv2d_grad_weight", "sparse_conv2d_grad_weight", match_direct<Kind::grad_weight>);

}  // namespace snug::backends::cuda
