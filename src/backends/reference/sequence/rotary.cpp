#include <cmath>

#include "backends/reference/call.h"
#include "backends/reference/kernels.h"
#include "ir/example_rows.h"
#include "ops/sequence/rotary_angles.h"

namespace snug::backends::reference {

namespace {

// position_of(row)
template <typename T, typename Position>
void rotate(const Call& call, const Position& position_of) {
  const View<const T> x = call.input<T>(0);
  const View<T> y = call.output<T>(0);
  const std::int64_t heads = call.attributes.integer("heads"), size = call.attributes.integer("head_size");
  const double base = call.attributes.real("base");
  const double direction = call.attributes.integer("inverse") != 0 ? -1 : 1;
  const std::int64_t columns = call.input_shape(0)[1];
  parallel_for(call, call.input_shape(0)[0], [&](std::int64_t r) {
    for (std::int64_t i = 0; i < size / 2; ++i) {
      const double angle = ops::rotary_angle(position_of(r), ops::rotary_frequency(base, size, i));
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

template <typename T>
void run_rotary(const Call& call) {
  const std::int64_t length = rows_per_example(call.attributes);
  rotate<T>(call, [length](std::int64_t r) { return r % length; });
}

template <typename T>
void run_at(const Call& call) {
  rotate<T>(call, [positions = call.input<std::int32_t>(1)](std::int64_t r) { return positions(r); });
}

constexpr Signature kAt{.inputs = {Element::real, Element::index}};

}  // namespace

constinit const KernelDef rotary = define<[]<typename T>() { return run_rotary<T>; }>("reference_rotary");
constinit const KernelDef rotary_at = define<[]<typename T>() { return run_at<T>; }, kAt>("reference_rotary_at");

}  // namespace snug::backends::reference
