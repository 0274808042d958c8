#include "backends/cuda/call.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/linear/any_product.h"
#include "ops/common.h"

namespace snug::backends::cuda {

namespace {

MatrixProblem problem_of(const Type& a, const Type& result, const Attributes& attributes) {
  const bool transpose_a = attributes.integer("transpose_a") != 0;
  return {.rows = result.shape[1],
          .columns = result.shape[2],
          .depth = a.shape[transpose_a ? 1 : 2],
          .left_transposed = transpose_a,
          .right_transposed = attributes.integer("transpose_b") != 0,
          .dtype = a.dtype,
          .batch = result.shape[0]};
}

KernelMatch match(const KernelQuery& query) {
  if (auto reason = refusal(Signature{}, query)) return Refuse{*reason};
  if (accumulates(query.attributes)) return Refuse{"cuBLASLt would round the sum once where a separate addition rounds twice"};
  if (!ops::lies_in_logical_order(query.outputs[0])) return Refuse{"products are made in logical order here"};
  if (query.device == nullptr) return Refuse{"there is no device to ask"};
  CudaDevice& device = cuda_device(query.device);
  ProductWorkspace workspace(device);
  workspace.plan(problem_of(query.inputs[0], query.outputs[0], query.attributes));
  const bool tf32 = query.outputs[0].dtype == DType::f32 && device.options().allow_tf32;
  return Accept{.workspace = workspace.bytes(), .numerics = tf32 ? "cublas-tf32" : "cublas"};
}

template <typename T>
std::unique_ptr<BoundKernel> bind(const Call& call) {
  const MatrixProblem problem = problem_of(call.input_type(0), call.output_type(0), call.attributes());
  return bind_product<T, T>(call, problem, call.in<T>(0), call.in<T>(1), call.out<T>(0), call.workspace_bytes());
}

consteval KernelDef define_batched(std::string_view name) {
  KernelDef kernel = define<[]<typename T>() { return bind<T>; }>(name);
  kernel.match = match;
  return kernel;
}

}  // namespace

constinit const KernelDef cublaslt_batched_product = define_batched("cublaslt_batched_product");

}  // namespace snug::backends::cuda
