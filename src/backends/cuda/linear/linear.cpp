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

using Choice = MatrixProducts::Choice;

struct Linear {
  const Choice& choice;
  bool adds_bias;  // the library does; otherwise a kernel after it
};

template <ProblemOf Problem>
Linear choose(CudaDevice& device, const Type& first, const Type& second, bool has_bias) {
  MatrixProducts& products = device.matrix_products();
  MatrixProblem problem = Problem(first, second);
  if (has_bias) {
    problem.adds_bias = true;
    const Choice& choice = products.choose(problem);
    if (choice.product) return {.choice = choice, .adds_bias = true};
    problem.adds_bias = false;
  }
  return {.choice = products.choose(problem), .adds_bias = false};
}

template <ProblemOf Problem>
KernelMatch match(const KernelQuery& query) {
  if (auto reason = refusal(Signature{}, query)) return Refuse{*reason};
  if (accumulates(query.attributes)) return Refuse{"cuBLASLt would round the sum once where a separate addition rounds twice"};
  if (query.device == nullptr) return Refuse{"there is no device to ask"};
  CudaDevice& device = cuda_device(query.device);
  const Choice& choice = choose<Problem>(device, query.inputs[0], query.inputs[1], query.inputs.size() == 3).choice;
  if (!choice.product) return Refuse{choice.refusal};
  return Accept{.workspace = library_workspace(choice.workspace),
                .numerics = query.outputs[0].dtype == DType::f32 && device.options().allow_tf32 ? "cublas-tf32" : "cublas"};
}

template <ProblemOf Problem, typename T>
std::unique_ptr<BoundKernel> bind(const Call& call) {
  const bool has_bias = call.input_count() == 3;
  const Linear linear = choose<Problem>(call.device(), call.input_type(0), call.input_type(1), has_bias);
  auto product = call.device().matrix_products().bind(linear.choice,
                                                      {.left = call.in<T>(0),
                                                       .right = call.in<T>(1),
                                                       .result = call.out<T>(0),
                                                       .bias = linear.adds_bias ? call.in<T>(2) : nullptr},
                                                      call.workspace_bytes());
  if (!has_bias || linear.adds_bias) return product;
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
