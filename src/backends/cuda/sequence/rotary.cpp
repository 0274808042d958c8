#include "backends/cuda/sequence/rotary.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include <fmt/format.h>

#include "backends/cuda/call.h"
#include "backends/cuda/kernels.h"
#include "ir/example_rows.h"
#include "ops/sequence/rotary_angles.h"

namespace snug::backends::cuda {

namespace {

launch::RotaryShape shape_of(const Call& call) {
  const Attributes& attributes = call.attributes();
  const Shape& x = call.input_shape(0);
  launch::RotaryShape shape{.rows = static_cast<std::uint32_t>(x[0]),
                            .columns = static_cast<std::uint32_t>(x[1]),
                            .heads = static_cast<std::uint32_t>(attributes.integer("heads")),
                            .half = static_cast<std::uint32_t>(attributes.integer("head_size") / 2),
                            .length = static_cast<std::uint32_t>(rows_per_example(attributes))};
  std::ranges::copy(ops::rotary_frequencies(attributes), std::begin(shape.frequencies));
  return shape;
}

// With the positions as another input, or without.
template <typename T>
std::unique_ptr<BoundKernel> bind_rotary(const Call& call) {
  return call.launch([x = call.in<T>(0), positions = call.input_count() == 2 ? call.in<std::int32_t>(1) : nullptr,
                      y = call.out<T>(0),
                      shape = shape_of(call)](cudaStream_t stream) { launch::rotary<T>(stream, x, positions, y, shape); });
}

template <Signature Operands>
KernelMatch match_rotary(const KernelQuery& query) {
  if (auto reason = refusal(Operands, query)) return Refuse{*reason};
  const std::int64_t size = query.attributes.integer("head_size");
  if (size > 2 * launch::kMostPairs)
    return Refuse{fmt::format("heads of {} columns are larger than the {} possible here", size, 2 * launch::kMostPairs)};
  return Accept{};
}

template <Signature Operands = Signature{}>
consteval KernelDef define_rotary(std::string_view name) {
  KernelDef kernel = define<[]<typename T>() { return bind_rotary<T>; }, Operands>(name);
  kernel.match = match_rotary<Operands>;
  return kernel;
}

}  // namespace

constinit const KernelDef rotary = define_rotary("cuda_rotary");
constinit const KernelDef rotary_at = define_rotary<Signature{.inputs = {Element::real, Element::index}}>("cuda_rotary_at");

}  // namespace snug::backends::cuda
