#include "backends/cuda/linear/matrix_products.h"

#include <array>

#include "backends/cuda/device/library_workspace.h"
#include "base/error.h"

namespace snug::backends::cuda {

namespace {

void check_cublas(cublasStatus_t status, std::string_view call) {
  if (status == CUBLAS_STATUS_SUCCESS) [[likely]]
    return;
  throw InternalError(fmt::format("{} failed: {}", call, cublasLtGetStatusString(status)));
}

using Operation = Owner<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using MatrixLayout = Owner<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Owner<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

Operation make_operation(const MatrixProblem& problem, bool allow_tf32) {
  const bool tf32 = problem.dtype == DType::f32 && allow_tf32;
  cublasLtMatmulDesc_t raw = nullptr;
  check_cublas(cublasLtMatmulDescCreate(&raw, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
               "cublasLtMatmulDescCreate");
  return Operation(raw);
}

cudaDataType_t data_type(DType dtype) {
  return dtype == DType::f16 ? CUDA_R_16F : dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

MatrixLayout make_layout(DType dtype, std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t raw = nullptr;
  // Columns are contiguous.
  check_cublas(cublasLtMatrixLayoutCreate(&raw, data_type(dtype), static_cast<std::uint64_t>(rows),
                                          static_cast<std::uint64_t>(columns), rows),
               "cublasLtMatrixLayoutCreate");
  return MatrixLayout(raw);
}

template <typename T>
void set_preference(const Preference& preference, cublasLtMatmulPreferenceAttributes_t name, T value) {
  check_cublas(cublasLtMatmulPreferenceSetAttribute(preference.get(), name, &value, sizeof value),
               "cublasLtMatmulPreferenceSetAttribute");
}

Preference make_preference(const CudaOptions& options) {
  cublasLtMatmulPreference_t raw = nullptr;
  check_cublas(cublasLtMatmulPreferenceCreate(&raw), "cublasLtMatmulPreferenceCreate");
  Preference preference(raw);
  set_preference(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                 static_cast<std::uint64_t>(options.workspace_limit.count()));
  // A split sum is combined in f32, in scratch: not rounded in between, and always in the same order.
  set_preference(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                 static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  for (const auto name : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set_preference(preference, name, static_cast<std::uint32_t>(kAlignment.count()));
  }
  return preference;
}

}  // namespace

// cuBLAS is column-major. A row-major matrix is the transpose of the same bytes read so, and result^T = right^T * left^T: the
// right factor comes first, and "transposed" is inverted.
class MatrixProduct {
 public:
  MatrixProduct(const MatrixProblem& problem, bool allow_tf32)
      : operation_(make_operation(problem, allow_tf32)),
        first_(problem.right_transposed ? make_layout(problem.dtype, problem.depth, problem.columns)
                                        : make_layout(problem.dtype, problem.columns, problem.depth)),
        second_(problem.left_transposed ? make_layout(problem.dtype, problem.rows, problem.depth)
                                        : make_layout(problem.dtype, problem.depth, problem.rows)),
        result_(make_layout(problem.dtype, problem.columns, problem.rows)) {
    set_transposed(CUBLASLT_MATMUL_DESC_TRANSA, problem.right_transposed);
    set_transposed(CUBLASLT_MATMUL_DESC_TRANSB, problem.left_transposed);
  }

  // False when cuBLAS has no algorithm.
  bool find_algorithm(cublasLtHandle_t handle, const CudaOptions& options, Bytes& workspace) {
    const Preference preference = make_preference(options);
    std::array<cublasLtMatmulHeuristicResult_t, 8> results{};
    int count = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle, operation_.get(), first_.get(), second_.get(), result_.get(), result_.get(),
                                       preference.get(), static_cast<int>(results.size()), results.data(), &count);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) return false;
    check_cublas(status, "cublasLtMatmulAlgoGetHeuristic");
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      if (results[i].state != CUBLAS_STATUS_SUCCESS) continue;
      algorithm_ = results[i].algo;
      workspace = Bytes(static_cast<std::int64_t>(results[i].workspaceSize));
      return true;
    }
    return false;
  }

  void run(cublasLtHandle_t handle, const void* left, const void* right, void* result, std::span<std::byte> workspace,
           cudaStream_t stream) const {
    const float one = 1;
    const float zero = 0;
    check_cublas(cublasLtMatmul(handle, operation_.get(), &one, right, first_.get(), left, second_.get(), &zero, result,
                                result_.get(), result, result_.get(), &algorithm_, workspace.data(), workspace.size(), stream),
                 "cublasLtMatmul");
  }

 private:
  void set_transposed(cublasLtMatmulDescAttributes_t name, bool transposed) {
    const cublasOperation_t value = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    check_cublas(cublasLtMatmulDescSetAttribute(operation_.get(), name, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
  }

  Operation operation_;
  MatrixLayout first_, second_, result_;
  cublasLtMatmulAlgo_t algorithm_{};
};

namespace {

std::string key_of(const MatrixProblem& problem) {
  return fmt::format("{} {}x{}x{} {}{}", name_of(problem.dtype), problem.rows, problem.columns, problem.depth,
                     problem.left_transposed ? "t" : "n", problem.right_transposed ? "t" : "n");
}

class BoundProduct final : public BoundKernel {
 public:
  struct Operands {
    const void* left;
    const void* right;
    void* result;
    std::span<std::byte> workspace;
  };
  BoundProduct(std::shared_ptr<const MatrixProducts> library, const Operands& operands, cublasLtHandle_t handle,
               std::shared_ptr<const MatrixProduct> product, cudaStream_t stream)
      : library_(std::move(library)), operands_(operands), handle_(handle), product_(std::move(product)), stream_(stream) {}
  void run() override { product_->run(handle_, operands_.left, operands_.right, operands_.result, operands_.workspace, stream_); }

 private:
  std::shared_ptr<const MatrixProducts> library_;  // owns the handle
  Operands operands_;
  cublasLtHandle_t handle_;
  std::shared_ptr<const MatrixProduct> product_;
  cudaStream_t stream_;
};

}  // namespace

MatrixProducts::MatrixProducts(CudaDevice& device) : device_(device) {
  cublasLtHandle_t handle = nullptr;
  check_cublas(cublasLtCreate(&handle), "cublasLtCreate");
  handle_ = Handle(handle);
}

MatrixProducts::~MatrixProducts() = default;

const MatrixProducts::Choice& MatrixProducts::choose(const MatrixProblem& problem) {
  const auto [entry, is_new] = choices_.try_emplace(key_of(problem));
  if (is_new) {
    auto product = std::make_shared<MatrixProduct>(problem, device_.options().allow_tf32);
    Choice& choice = entry->second;
    if (product->find_algorithm(handle_.get(), device_.options(), choice.workspace)) {
      choice.product = std::move(product);
    } else {
      choice.refusal = "cuBLASLt has no algorithm for it";
    }
  }
  return entry->second;
}

std::unique_ptr<BoundKernel> MatrixProducts::bind(const Choice& choice, const void* left, const void* right, void* result,
                                                  std::span<std::byte> workspace) {
  SNUG_CHECK(choice.product != nullptr, "cuBLASLt refused this product ({}), but the plan has it", choice.refusal);
  const std::span<std::byte> usable = on_library_boundary(workspace);
  if (Bytes(static_cast<std::int64_t>(usable.size())) < choice.workspace) {
    throw_user_error(
        "a matrix product was planned with {} bytes of workspace and cuBLASLt now wants {}; plan again with this version",
        usable.size(), choice.workspace.count());
  }
  return std::make_unique<BoundProduct>(
      shared_from_this(), BoundProduct::Operands{.left = left, .right = right, .result = result, .workspace = usable},
      handle_.get(), choice.product, device_.stream());
}

}  // namespace snug::backends::cuda
