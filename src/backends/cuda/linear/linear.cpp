#include "backends/cuda/call.h"
#include "backends/cuda/device/library_workspace.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/linear/matrix_products.h"
#include "backends/cuda/linear/with_bias.h"

namespace snug::backends::cuda {

namespace {

// y [N,O] = x [N,I] * weight [O,I]^T
MatrixProblem forward_problem(const Type& x, const Type& weight) {
  return {.rows = x.shape[0],
          .columns = weight.shape[0],
          .depth = x.shape[1],
          .left_transposed = false,
          .right_transposed = true,
          .dtype = x.dtype};
}

// dx [N,I] = dy [N,O] * weight [O,I]
MatrixProblem grad_input_problem(const Type& dy, const Type& weight) {
  return {.rows = dy.shape[0],
          .columns = weight.shape[1],
          .depth = dy.shape[1],
          .left_transposed = false,
          .right_transposed = false,
          .dtype = dy.dtype};
}

// dweight [O,I] = dy [N,O]^T * x [N,I]
MatrixProblem grad_weight_problem(const Type& dy, const Type& x) {
  return {.rows = dy.shape[1],
          .columns = x.shape[1],
          .depth = dy.shape[0],
          .left_transposed = true,
          .right_transposed = false,
          .dtype = dy.dtype};
}

using ProblemOf = MatrixProblem (*)(const Type&, const Type&);

template <ProblemOf Problem>
KernelMatch match(const KernelQuery& query) {
  if (auto reason = refusal(Signature{}, query)) return Refuse{*reason};
  if (accumulates(query.attributes)) return Refuse{"cuBLASLt would round the sum once where a separate addition rounds twice"};
  if (query.device == nullptr) return Refuse{"there is no device to ask"};
  CudaDevice& device = cuda_device(query.device);
  const auto& choice = device.matrix_products().choose(Problem(query.inputs[0], query.inputs[1]));
  if (!choice.product) return Refuse{choice.refusal};
  return Accept{.workspace = library_workspace(choice.workspace),
                .numerics = query.outputs[0].dtype == DType::f32 && device.options().allow_tf32 ? "cublas-tf32" : "cublas"};
}

template <ProblemOf Problem, typename T>
std::unique_ptr<BoundKernel> bind(const Call& call) {
  MatrixProducts& products = call.device().matrix_products();
  auto product = products.bind(products.choose(Problem(call.input_type(0), call.input_type(1))), call.in<T>(0), call.in<T>(1),
                               call.out<T>(0), call.workspace_bytes());
  if (call.input_count() < 3) return product;
  return std::make_unique<WithBias<T>>(std::move(product), call);
}

template <ProblemOf Problem>
consteval KernelDef define_cublaslt(std::string_view name) {
  KernelDef kernel = define<[]<typename T>() { return bind<Problem, T>; }>(name);
  kernel.match = match<Problem>;
  return kernel;
}

}  // namespace

constinit const KernelDef cublaslt_linear = define_cublaslt<forward_problem>("cublaslt_linear");
constinit const KernelDef cublaslt_linear_grad_input = define_cublaslt<grad_input_problem>("cublaslt_linear_grad_input");
constinit const KernelDef cublaslt_linear_grad_weight = define_cublaslt<grad_weight_problem>("cublaslt_linear_grad_weight");

}  // namespace snug::backends::cuda
