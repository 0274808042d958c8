#include <algorithm>

#include "backends/reference/kernels.h"
#include "backends/reference/sequence/rows.h"

namespace snug::backends::reference {

namespace {

template <typename T>
void run_embedding(const Call& call) {
  const View<const std::int32_t> indices = call.input<std::int32_t>(0);
  const View<const T> table = call.input<T>(1);
  const View<T> y = call.output<T>(0);
  const std::int64_t rows = call.input_shape(1)[0], columns = call.input_shape(1)[1];
  parallel_for(call, call.input_shape(0)[0], [&](std::int64_t r) {
    const std::int64_t index = indices(r);
    const bool exists = index >= 0 && index < rows;
    for (std::int64_t c = 0; c < columns; ++c) y(r, c) = exists ? table(index, c) : T{0};
  });
}

template <typename T>
void run_grad(const Call& call) {
  const View<const std::int32_t> indices = call.input<std::int32_t>(0);
  const View<const T> dy = call.input<T>(1);
  const Result<T> gradient = call.result<T>();
  const std::int64_t rows = call.input_shape(1)[0], columns = call.input_shape(1)[1];
  parallel_for(call, call.output_shape(0)[0], [&](std::int64_t index) {
    for (std::int64_t first = 0; first < columns; first += kColumnBlock) {
      const std::int64_t count = std::min(kColumnBlock, columns - first);
      double sums[kColumnBlock] = {};
      for (std::int64_t r = 0; r < rows; ++r) {
        if (indices(r) != index) continue;
        for (std::int64_t c = 0; c < count; ++c) sums[c] += dy(r, first + c);
      }
      for (std::int64_t c = 0; c < count; ++c) gradient.set(gradient.offset(index, first + c), sums[c]);
    }
  });
}

constexpr Signature kSignature{.inputs = {Element::index, Element::real}};

}  // namespace

constinit const KernelDef embedding = define<[]<typename T>() { return run_embedding<T>; }, kSignature>("reference_embedding");
constinit const KernelDef embedding_grad =
    define<[]<typename T>() { return run_grad<T>; }, kSignature>("reference_embedding_grad");

}  // namespace snug::backends::reference
