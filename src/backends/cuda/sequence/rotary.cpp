#include "backends/cuda/sequence/rotary.h"

#include <cmath>

#include "backends/cuda/call.h"
#include "backends/cuda/kernels.h"
#include "ir/example_rows.h"

namespace snug::backends::cuda {

namespace {

launch::RotaryShape shape_of(const Call& call) {
  const Attributes& attributes = call.attributes();
  const Shape& x = call.input_shape(0);
  const std::int64_t size = attributes.integer("head_size");
  return {.rows = static_cast<std::uint32_t>(x[0]),
          .columns = static_cast<std::uint32_t>(x[1]),
          .heads = static_cast<std::uint32_t>(attributes.integer("heads")),
          .half = static_cast<std::uint32_t>(size / 2),
          .length = static_cast<std::uint32_t>(rows_per_example(attributes)),
          .octaves = 2.0 / static_cast<double>(size) * std::log2(attributes.real("base")),
          .direction = attributes.integer("inverse") != 0 ? -1.0F : 1.0F};
}

// With the positions as another input, or without.
template <typename T>
std::unique_ptr<BoundKernel> bind_rotary(const Call& call) {
  return call.launch([x = call.in<T>(0), positions = call.input_count() == 2 ? call.in<std::int32_t>(1) : nullptr,
                      y = call.out<T>(0),
                      shape = shape_of(call)](cudaStream_t stream) { launch::rotary<T>(stream, x, positions, y, shape); });
}

constexpr Signature kAt{.inputs = {Element::real, Element::index}};

}  // namespace

constinit const KernelDef rotary = define<[]<typename T>() { return bind_rotary<T>; }>("cuda_rotary");
constinit const KernelDef rotary_at = define<[]<typename T>() { return bind_rotary<T>; }, kAt>("cuda_rotary_at");

}  // namespace snug::backends::cuda
