// Matrix products by cuBLASLt, whose scratch is in the plan.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include <cublasLt.h>

#include "backends/cuda/device/device.h"
#include "backends/cuda/device/handles.h"
#include "ir/type.h"

namespace snug::backends::cuda {

// result[rows, columns] = left[rows, depth] * right[depth, columns], all row-major. A factor may be stored transposed. Of several
// products, each operand's matrices lie one behind the other.
struct MatrixProblem {
  std::int64_t rows, columns, depth;
  bool left_transposed, right_transposed;  // stored as [depth, rows], [columns, depth]
  DType dtype;                             // f32, f16 or bf16, of all three; sums are in f32
  bool adds_bias = false;                  // [columns], before the result is rounded
  bool wide_result = false;                // the result is f32 whatever the factors are
  bool adds_to_result = false;             // to what lies there; the sum is rounded once
  // Elements from a stored row to the next; 0: they lie together.
  std::int64_t left_stride = 0, right_stride = 0, result_stride = 0;
  std::int64_t batch = 1;  // products
};

struct MatrixOperands {
  const void* left;
  const void* right;
  void* result;
  const void* bias = nullptr;  // where the problem has one
};

// The algorithm for a problem, and its descriptors.
class MatrixProduct;

// Bound kernels keep it alive: see CudaDevice::close_unused_libraries.
class MatrixProducts : public std::enable_shared_from_this<MatrixProducts> {
 public:
  explicit MatrixProducts(CudaDevice& device);
  ~MatrixProducts();
  MatrixProducts(const MatrixProducts&) = delete;
  MatrixProducts& operator=(const MatrixProducts&) = delete;

  struct Choice {
    std::shared_ptr<const MatrixProduct> product;  // none: refused
    std::string refusal;
    Bytes workspace;
  };
  const Choice& choose(const MatrixProblem& problem);

  std::unique_ptr<BoundKernel> bind(const Choice& choice, const MatrixOperands& operands, std::span<std::byte> workspace);

 private:
  using Handle = Owner<cublasLtHandle_t, cublasLtDestroy>;

  CudaDevice& device_;
  Handle handle_;
  std::map<std::string, Choice> choices_;
};

}  // namespace snug::backends::cuda
