#include "backends/cuda/linear/matrix_products.h"

#include <algorithm>
#include <array>
#include <bit>

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

template <typename T>
void set_attribute(const Operation& operation, cublasLtMatmulDescAttributes_t name, T value) {
  check_cublas(cublasLtMatmulDescSetAttribute(operation.get(), name, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
}

// cuBLAS is column-major. A row-major matrix is the transpose of the same bytes read so, and result^T = right^T * left^T: the
// right factor comes first, and "transposed" is inverted.
Operation make_operation(const MatrixProblem& problem, bool allow_tf32, const void* bias) {
  const bool tf32 = problem.dtype == DType::f32 && allow_tf32;
  cublasLtMatmulDesc_t raw = nullptr;
  check_cublas(cublasLtMatmulDescCreate(&raw, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
               "cublasLtMatmulDescCreate");
  Operation operation(raw);
  set_attribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, problem.right_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set_attribute(operation, CUBLASLT_MATMUL_DESC_TRANSB, problem.left_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (problem.adds_bias) {
    set_attribute(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set_attribute(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  }
  return operation;
}

// Stands for a bias while an algorithm is looked for: only its alignment is read.
const void* any_bias() { return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(kAlignment.count())); }

cudaDataType_t data_type(DType dtype) {
  return dtype == DType::f16 ? CUDA_R_16F : dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

template <typename T>
void set_attribute(const MatrixLayout& layout, cublasLtMatrixLayoutAttribute_t name, T value) {
  check_cublas(cublasLtMatrixLayoutSetAttribute(layout.get(), name, &value, sizeof value), "cublasLtMatrixLayoutSetAttribute");
}

// An operand as cuBLAS sees it: columns, of `rows` elements, are contiguous and `stride` apart.
struct Matrix {
  DType dtype;
  std::int64_t rows, columns, stride;
  std::int64_t batch;  // matrices, one behind the other

  Matrix(DType of, std::int64_t height, std::int64_t width, std::int64_t given_stride, std::int64_t count)
      : dtype(of), rows(height), columns(width), stride(given_stride == 0 ? height : given_stride), batch(count) {}

  std::int64_t offset() const { return columns * stride; }  // from a matrix to the next

  MatrixLayout layout() const {
    cublasLtMatrixLayout_t raw = nullptr;
    check_cublas(cublasLtMatrixLayoutCreate(&raw, data_type(dtype), static_cast<std::uint64_t>(rows),
                                            static_cast<std::uint64_t>(columns), stride),
                 "cublasLtMatrixLayoutCreate");
    MatrixLayout made(raw);
    if (batch == 1) return made;
    set_attribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(batch));
    set_attribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, offset());
    return made;
  }

  // Of every matrix's first byte, as far as the arena's alignment goes.
  std::uint32_t alignment_bytes() const {
    const auto most = static_cast<std::uint32_t>(kAlignment.count());
    if (batch == 1) return most;
    const auto bytes = static_cast<std::uint64_t>(offset() * bits_per_element(dtype) / 8);
    return std::min(most, std::uint32_t{1} << std::min(std::countr_zero(bytes), 31));
  }
};

Matrix left_of(const MatrixProblem& p) {
  return p.left_transposed ? Matrix(p.dtype, p.rows, p.depth, p.left_stride, p.batch)
                           : Matrix(p.dtype, p.depth, p.rows, p.left_stride, p.batch);
}
Matrix right_of(const MatrixProblem& p) {
  return p.right_transposed ? Matrix(p.dtype, p.depth, p.columns, p.right_stride, p.batch)
                            : Matrix(p.dtype, p.columns, p.depth, p.right_stride, p.batch);
}
Matrix result_of(const MatrixProblem& p) {
  return {p.wide_result ? DType::f32 : p.dtype, p.columns, p.rows, p.result_stride, p.batch};
}

template <typename T>
void set_preference(const Preference& preference, cublasLtMatmulPreferenceAttributes_t name, T value) {
  check_cublas(cublasLtMatmulPreferenceSetAttribute(preference.get(), name, &value, sizeof value),
               "cublasLtMatmulPreferenceSetAttribute");
}

Preference make_preference(const MatrixProblem& problem, const CudaOptions& options) {
  cublasLtMatmulPreference_t raw = nullptr;
  check_cublas(cublasLtMatmulPreferenceCreate(&raw), "cublasLtMatmulPreferenceCreate");
  Preference preference(raw);
  set_preference(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                 static_cast<std::uint64_t>(options.workspace_limit.count()));
  // A split sum is combined in f32, in scratch: not rounded in between, and always in the same order.
  set_preference(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                 static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  set_preference(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, right_of(problem).alignment_bytes());
  set_preference(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, left_of(problem).alignment_bytes());
  for (const auto name : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set_preference(preference, name, result_of(problem).alignment_bytes());
  return preference;
}

}  // namespace

class MatrixProduct {
 public:
  MatrixProduct(const MatrixProblem& problem, bool allow_tf32)
      : problem_(problem),
        allow_tf32_(allow_tf32),
        operation_(make_operation(problem, allow_tf32, any_bias())),
        first_(right_of(problem).layout()),
        second_(left_of(problem).layout()),
        result_(result_of(problem).layout()) {}

  // False when cuBLAS has no algorithm.
  bool find_algorithm(cublasLtHandle_t handle, const CudaOptions& options, Bytes& workspace) {
    const Preference preference = make_preference(problem_, options);
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

  // For these operands alone.
  Operation operation_for(const MatrixOperands& operands) const { return make_operation(problem_, allow_tf32_, operands.bias); }

  void run(cublasLtHandle_t handle, const Operation& operation, const MatrixOperands& o, std::span<std::byte> workspace,
           cudaStream_t stream) const {
    const float one = 1;
    const float before = problem_.adds_to_result ? 1 : 0;
    check_cublas(cublasLtMatmul(handle, operation.get(), &one, o.right, first_.get(), o.left, second_.get(), &before, o.result,
                                result_.get(), o.result, result_.get(), &algorithm_, workspace.data(), workspace.size(), stream),
                 "cublasLtMatmul");
  }

 private:
  MatrixProblem problem_;
  bool allow_tf32_;
  Operation operation_;
  MatrixLayout first_, second_, result_;
  cublasLtMatmulAlgo_t algorithm_{};
};

namespace {

std::string key_of(const MatrixProblem& problem) {
  return fmt::format("{} {}x{}x{} {}{}{}{}{} {}/{}/{} {}", name_of(problem.dtype), problem.rows, problem.columns, problem.depth,
                     problem.left_transposed ? "t" : "n", problem.right_transposed ? "t" : "n", problem.adds_bias ? "b" : "",
                     problem.wide_result ? "w" : "", problem.adds_to_result ? "+" : "", problem.left_stride, problem.right_stride,
                     problem.result_stride, problem.batch);
}

class BoundProduct final : public BoundKernel {
 public:
  BoundProduct(std::shared_ptr<const MatrixProducts> library, cublasLtHandle_t handle,
               std::shared_ptr<const MatrixProduct> product, const MatrixOperands& operands, std::span<std::byte> workspace,
               cudaStream_t stream)
      : library_(std::move(library)),
        handle_(handle),
        product_(std::move(product)),
        operation_(product_->operation_for(operands)),
        operands_(operands),
        workspace_(workspace),
        stream_(stream) {}
  void run() override { product_->run(handle_, operation_, operands_, workspace_, stream_); }

 private:
  std::shared_ptr<const MatrixProducts> library_;  // owns the handle
  cublasLtHandle_t handle_;
  std::shared_ptr<const MatrixProduct> product_;
  Operation operation_;
  MatrixOperands operands_;
  std::span<std::byte> workspace_;
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

std::unique_ptr<BoundKernel> MatrixProducts::bind(const Choice& choice, const MatrixOperands& operands,
                                                  std::span<std::byte> workspace) {
  SNUG_CHECK(choice.product != nullptr, "cuBLASLt refused this product ({}), but the plan has it", choice.refusal);
  const std::span<std::byte> usable = on_library_boundary(workspace);
  if (Bytes(static_cast<std::int64_t>(usable.size())) < choice.workspace) {
    throw_user_error(
        "a matrix product was planned with {} bytes of workspace and cuBLASLt now wants {}; plan again with this version",
        usable.size(), choice.workspace.count());
  }
  // Where it wants none, a pointer into whatever follows would be refused for its alignment.
  const std::span<std::byte> given =
      choice.workspace == Bytes(0) ? std::span<std::byte>() : usable.first(static_cast<std::size_t>(choice.workspace.count()));
  return std::make_unique<BoundProduct>(shared_from_this(), handle_.get(), choice.product, operands, given, device_.stream());
}

}  // namespace snug::backends::cuda
