#include <utility>

#include "backends/reference/call.h"
#include "backends/reference/kernels.h"

namespace snug::backends::reference {

namespace {

template <typename T>
void run_batched_product(const Call& call) {
  View<const T> a = call.input<T>(0);
  View<const T> b = call.input<T>(1);
  const bool transpose_a = call.attributes.integer("transpose_a") != 0;
  if (transpose_a) std::swap(a.strides[1], a.strides[2]);
  if (call.attributes.integer("transpose_b") != 0) std::swap(b.strides[1], b.strides[2]);
  const Result<T> y = call.result<T>();
  const Shape& shape = call.output_shape(0);
  const std::int64_t depth = call.input_shape(0)[transpose_a ? 1 : 2];
#pragma omp parallel for collapse(2) num_threads(call.threads)
  for (std::int64_t batch = 0; batch < shape[0]; ++batch) {
    for (std::int64_t i = 0; i < shape[1]; ++i) {
      for (std::int64_t j = 0; j < shape[2]; ++j) {
        double sum = 0;
        for (std::int64_t k = 0; k < depth; ++k) sum += double{a(batch, i, k)} * double{b(batch, k, j)};
        y.set(y.offset(batch, i, j), sum);
      }
    }
  }
}

}  // namespace

constinit const KernelDef batched_product =
    define<[]<typename T>() { return run_batched_product<T>; }>("reference_batched_product");

}  // namespace snug::backends::reference
