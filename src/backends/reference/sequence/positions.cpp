#include "backends/reference/call.h"
#include "backends/reference/kernels.h"
#include "ir/example_rows.h"

namespace snug::backends::reference {

namespace {

template <typename T>
void run_add_positions(const Call& call) {
  const View<const T> x = call.input<T>(0);
  const View<const T> table = call.input<T>(1);
  const View<T> y = call.output<T>(0);
  const std::int64_t length = rows_per_example(call.attributes), columns = call.input_shape(0)[1];
  parallel_for(call, call.input_shape(0)[0], [&](std::int64_t r) {
    for (std::int64_t c = 0; c < columns; ++c) y(r, c) = x(r, c) + table(r % length, c);
  });
}

template <typename T>
void run_grad(const Call& call) {
  const View<const T> dy = call.input<T>(0);
  const Result<T> gradient = call.result<T>();
  const std::int64_t length = rows_per_example(call.attributes);
  const std::int64_t rows = call.input_shape(0)[0], columns = call.input_shape(0)[1];
  parallel_for(call, call.output_shape(0)[0], [&](std::int64_t position) {
    for (std::int64_t c = 0; c < columns; ++c) {
      double sum = 0;
      if (position < length) {
        for (std::int64_t r = position; r < rows; r += length) sum += dy(r, c);
      }
      gradient.set(gradient.offset(position, c), sum);
    }
  });
}

template <typename T>
void run_at(const Call& call) {
  const View<const T> x = call.input<T>(0);
  const View<const T> table = call.input<T>(1);
  const View<const std::int32_t> positions = call.input<std::int32_t>(2);
  const View<T> y = call.output<T>(0);
  const std::int64_t most = call.input_shape(1)[0], columns = call.input_shape(0)[1];
  parallel_for(call, call.input_shape(0)[0], [&](std::int64_t r) {
    const std::int64_t position = positions(r);
    const bool exists = position >= 0 && position < most;
    for (std::int64_t c = 0; c < columns; ++c) y(r, c) = exists ? x(r, c) + table(position, c) : x(r, c);
  });
}

constexpr Signature kAt{.inputs = {Element::real, Element::real, Element::index}};

}  // namespace

constinit const KernelDef add_positions = define<[]<typename T>() { return run_add_positions<T>; }>("reference_add_positions");
constinit const KernelDef add_positions_grad = define<[]<typename T>() { return run_grad<T>; }>("reference_add_positions_grad");
constinit const KernelDef add_positions_at = define<[]<typename T>() { return run_at<T>; }, kAt>("reference_add_positions_at");

}  // namespace snug::backends::reference
