#include "backends/sparse_store.h"

#include "backends/reference/call.h"
#include "backends/reference/kernels.h"
#include "backends/rewiring.h"

namespace snug::backends::reference {

namespace {

void run_pattern(const Call& call) {
  const ops::SparseGrid grid = ops::SparseGrid::from(call.attributes);
  draw_pattern(
      grid, call.attributes.integers("tensor_nonzeros"), call.scalars(2).seed,
      {reinterpret_cast<std::uint8_t*>(call.outputs[0].data), static_cast<std::size_t>(call.outputs[0].type.bytes().count())},
      reinterpret_cast<std::int32_t*>(call.outputs[1].data));
}

template <typename T>
void run_values(const Call& call) {
  const ops::SparseSlot slot = ops::SparseSlot::from(call.attributes);
  const std::uint64_t seed = call.scalars(3).seed;
  const auto key = static_cast<std::uint64_t>(call.attributes.integer("key"));
  const double spread = call.attributes.real("spread");
  const auto draw = call.attributes.integer("uniform") != 0 ? ops::draw_init_uniform : ops::draw_init_normal;
  const SparseRows<T> rows{.values = brought_over<T>(call.inputs[0], call.outputs[0]),
                           .columns = reinterpret_cast<const std::uint8_t*>(call.inputs[1].data),
                           .rows = reinterpret_cast<const std::int32_t*>(call.inputs[2].data) + slot.first_row,
                           .bits = slot.bits};
  parallel_for(call, slot.rows(), [&](std::int64_t row) { draw_values(slot, rows, row, row + 1, draw, seed, key, spread); });
}

constexpr Signature kPattern{.inputs = {Element::image_bytes, Element::labels, Element::scalars},
                             .outputs = {Element::image_bytes, Element::labels}};
constexpr Signature kValues{.inputs = {Element::real, Element::image_bytes, Element::labels, Element::scalars}};
constexpr Signature kRewire{
    .inputs = {Element::real, Element::image_bytes, Element::labels, Element::metrics, Element::scalars, Element::real},
    .outputs = {Element::real, Element::image_bytes, Element::labels, Element::metrics, Element::metrics, Element::real}};

}  // namespace

constinit const KernelDef init_sparse_pattern = define<run_pattern, run_pattern, kPattern>("reference_init_sparse_pattern");
constinit const KernelDef init_sparse = define<run_values<float>, run_values<double>, kValues>("reference_init_sparse");
constinit const KernelDef rewire{.name = "reference_rewire",
                                 .op = "rewire",
                                 .match = [](const KernelQuery& query) { return match_operands(kRewire, query); },
                                 .bind = [](const KernelArguments& arguments) -> std::unique_ptr<BoundKernel> {
                                   if (arguments.inputs[0].type.dtype == DType::f64)
                                     return std::make_unique<BoundRewiring<double>>(arguments);
                                   return std::make_unique<BoundRewiring<float>>(arguments);
                                 }};

}  // namespace snug::backends::reference
