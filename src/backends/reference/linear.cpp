#include <algorithm>
#include <utility>

#include "backends/reference/call.h"
#include "backends/reference/kernels.h"
#include "backends/reference/product_tile.h"

namespace snug::backends::reference {

namespace {

template <typename T>
View<const T> transposed(View<const T> matrix) {
  std::swap(matrix.strides[0], matrix.strides[1]);
  return matrix;
}

// result(i, j) = sum over k < depth of a(i, k) * b(k, j)   (+ bias(j) when it has data)
template <typename T>
void multiply(const Call& call, View<const T> a, View<const T> b, std::int64_t depth, View<const T> bias = {}) {
  const Result<T> result = call.result<T>();
  const std::int64_t rows = call.output_shape(0)[0];
  const std::int64_t columns = call.output_shape(0)[1];
#pragma omp parallel for collapse(2) num_threads(call.threads)
  for (std::int64_t row = 0; row < rows; row += ProductTile::kRows) {
    for (std::int64_t column = 0; column < columns; column += ProductTile::kColumns) {
      const std::int64_t tile_rows = std::min(ProductTile::kRows, rows - row);
      const std::int64_t tile_columns = std::min(ProductTile::kColumns, columns - column);
      ProductTile tile;
      std::int64_t all[ProductTile::kRows];
      for (std::int64_t i = 0; i < tile_rows; ++i) all[i] = i;
      for (std::int64_t first = 0; first < depth; first += ProductTile::kDepth) {
        const std::int64_t staged = std::min(ProductTile::kDepth, depth - first);
        for (std::int64_t i = 0; i < tile_rows; ++i) {
          for (std::int64_t k = 0; k < staged; ++k) tile.set_left(i, k, a(row + i, first + k));
        }
        for (std::int64_t k = 0; k < staged; ++k) {
          for (std::int64_t j = 0; j < ProductTile::kColumns; ++j)
            tile.set_right(k, j, j < tile_columns ? b(first + k, column + j) : T{0});
        }
        tile.multiply(all, tile_rows, staged);
      }
      for (std::int64_t i = 0; i < tile_rows; ++i) {
        for (std::int64_t j = 0; j < tile_columns; ++j) {
          const double sum = bias.data == nullptr ? tile.sum(i, j) : tile.sum(i, j) + bias(column + j);
          result.set(result.offset(row + i, column + j), sum);
        }
      }
    }
  }
}

// y = x weight^T + bias
template <typename T>
void run_linear(const Call& call) {
  const View<const T> bias = call.inputs.size() == 3 ? call.input<T>(2) : View<const T>{};
  multiply<T>(call, call.input<T>(0), transposed(call.input<T>(1)), call.input_shape(0)[1], bias);
}

// dx = dy weight
template <typename T>
void run_grad_input(const Call& call) {
  multiply<T>(call, call.input<T>(0), call.input<T>(1), call.input_shape(0)[1]);
}

// dweight = dy^T x
template <typename T>
void run_grad_weight(const Call& call) {
  multiply<T>(call, transposed(call.input<T>(0)), call.input<T>(1), call.input_shape(0)[0]);
}

}  // namespace

constinit const KernelDef linear = define<[]<typename T>() { return run_linear<T>; }>("reference_linear");
constinit const KernelDef linear_grad_input =
    define<[]<typename T>() { return run_grad_input<T>; }>("reference_linear_grad_input");
constinit const KernelDef linear_grad_weight =
    define<[]<typename T>() { return run_grad_weight<T>; }>("reference_linear_grad_weight");

}  // namespace snug::backends::reference
