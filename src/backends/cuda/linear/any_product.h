// Products inside a kernel of several steps: by cuBLASLt where it has an algorithm, else by a plain kernel, so that every shape
// is taken.
#pragma once

#include <algorithm>
#include <memory>
#include <span>

#include "backends/cuda/call.h"
#include "backends/cuda/convolution/direct.h"
#include "backends/cuda/device/library_workspace.h"
#include "backends/cuda/linear/matrix_products.h"

namespace snug::backends::cuda {

// The workspace that several products share, one after the other.
class ProductWorkspace {
 public:
  explicit ProductWorkspace(CudaDevice& device) : products_(device.matrix_products()) {}

  void plan(const MatrixProblem& problem) { most_ = std::max(most_, library_workspace(products_.choose(problem).workspace)); }
  Bytes bytes() const { return most_; }

 private:
  MatrixProducts& products_;
  Bytes most_;
};

inline launch::ProductShape plain_shape(const MatrixProblem& p) {
  const auto number = [](std::int64_t x) { return static_cast<std::uint32_t>(x); };
  const auto stride = [&](std::int64_t given, std::int64_t packed) { return number(given == 0 ? packed : given); };
  const std::uint32_t left = stride(p.left_stride, p.left_transposed ? p.rows : p.depth);
  const std::uint32_t right = stride(p.right_stride, p.right_transposed ? p.depth : p.columns);
  const std::uint32_t result = stride(p.result_stride, p.columns);
  return {.rows = number(p.rows),
          .columns = number(p.columns),
          .depth = number(p.depth),
          .a_row = p.left_transposed ? 1 : left,
          .a_depth = p.left_transposed ? left : 1,
          .b_depth = p.right_transposed ? 1 : right,
          .b_column = p.right_transposed ? right : 1,
          .result_row = result,
          .adds = p.adds_to_result,
          .batch = number(p.batch),
          .a_matrix = std::size_t{left} * number(p.left_transposed ? p.depth : p.rows),
          .b_matrix = std::size_t{right} * number(p.right_transposed ? p.columns : p.depth),
          .result_matrix = std::size_t{result} * number(p.rows)};
}

// T: what the factors are stored as; R: what the result is, T or float where the problem has a wide result. No bias.
template <typename T, typename R>
std::unique_ptr<BoundKernel> bind_product(const Call& call, const MatrixProblem& problem, const T* left, const T* right,
                                          R* result, std::span<std::byte> workspace) {
  MatrixProducts& products = call.device().matrix_products();
  const auto& choice = products.choose(problem);
  if (choice.product) return products.bind(choice, {.left = left, .right = right, .result = result}, workspace);
  return call.launch([left, right, result, shape = plain_shape(problem)](cudaStream_t stream) {
    launch::product<T, R>(stream, left, right, nullptr, result, shape);
  });
}

}  // namespace snug::backends::cuda
