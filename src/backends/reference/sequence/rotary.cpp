#include <cmath>

#include "backends/reference/call.h"
#include "backends/reference/kernels.h"
#include "ir/example_rows.h"

namespace snug::backends::reference {

namespace {

template <typename T>
void run_rotary(const Call& call) {
  const View<const T> x = call.input<T>(0);
  const View<T> y = call.output<T>(0);
  const std::int64_t heads = call.attributes.integer("heads"), size = call.attributes.integer("head_size");
  const double base = call.attributes.real("base");
  const double direction = call.attributes.integer("inverse") != 0 ? -1 : 1;
  const std::int64_t length = rows_per_example(call.attributes), columns = call.input_shape(0)[1];
  parallel_for(call, call.input_shape(0)[0], [&](std::int64_t r) {
    for (std::int64_t i = 0; i < size / 2; ++i) {
      const double frequency = std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(size));
      const double angle = static_cast<double>(r % length) * frequency;
      const double cosine = std::cos(angle), sine = direction * std::sin(angle);
      for (std::int64_t head = 0; head < heads; ++head) {
        const std::int64_t first = head * size + i, second = first + size / 2;
        const double x1 = x(r, first), x2 = x(r, second);
        y(r, first) = static_cast<T>(x1 * cosine - x2 * sine);
        y(r, second) = static_cast<T>(x2 * cosine + x1 * sine);
      }
    }
    for (std::int64_t c = heads * size; c < columns; ++c) y(r, c) = x(r, c);
  });
}

}  // namespace

constinit const KernelDef rotary = define<[]<typename T>() { return run_rotary<T>; }>("reference_rotary");

}  // namespace snug::backends::reference
