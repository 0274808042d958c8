#include "backends/sparse_store.h"

#include <algorithm>

#include "backends/reference/call.h"
#include "backends/reference/kernels.h"
#include "backends/rewiring.h"

namespace snug::backends::reference {

namespace {

// An output that may lie in its input's bytes, with the input's contents.
template <typename T>
T* brought_over(const Call& call, std::size_t input, std::size_t output) {
  const Operand& from = call.inputs[input];
  const Operand& to = call.outputs[output];
  if (from.data != to.data) std::memcpy(to.data, from.data, static_cast<std::size_t>(to.type.bytes().count()));
  return reinterpret_cast<T*>(to.data);
}

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
  const SparseRows<T> rows{.values = brought_over<T>(call, 0, 0),
                           .columns = reinterpret_cast<const std::uint8_t*>(call.inputs[1].data),
                           .rows = reinterpret_cast<const std::int32_t*>(call.inputs[2].data) + slot.first_row,
                           .bits = slot.bits};
  parallel_for(call, slot.rows(), [&](std::int64_t row) {
    for (std::int64_t k = rows.begin(row); k < rows.end(row); ++k) {
      const auto element = static_cast<std::uint64_t>(slot.logical_element(row, rows.column(k)));
      rows.values[k] = static_cast<T>(spread * draw(seed, key, element));
    }
  });
}

// The sizes of its lists are known when it is bound.
template <typename T>
class Rewire final : public BoundKernel {
 public:
  explicit Rewire(const KernelArguments& arguments)
      : call_{.attributes = arguments.attributes,
              .inputs = {arguments.inputs.begin(), arguments.inputs.end()},
              .outputs = {arguments.outputs.begin(), arguments.outputs.end()},
              .threads = arguments.threads},
        rewiring_(ops::SparseGrid::from(arguments.attributes), arguments.inputs[0].type.elements()) {}

  void run() override {
    T* values = brought_over<T>(call_, 0, 0);
    auto* columns = brought_over<std::uint8_t>(call_, 1, 1);
    auto* rows = brought_over<std::int32_t>(call_, 2, 2);
    auto* threshold = brought_over<double>(call_, 3, 3);
    const Scalars scalars = call_.scalars(4);
    const std::int64_t target = call_.attributes.integer("target");
    std::int64_t pruned = 0;
    if (call_.attributes.integer("per_tensor") != 0) {
      pruned = rewiring_.prune_smallest(target, values, columns, rows);
    } else {
      pruned = rewiring_.prune_below(*threshold, values, columns, rows);
      *threshold = adapted_threshold(*threshold, pruned, target);
    }
    *reinterpret_cast<double*>(call_.outputs[4].data) = static_cast<double>(pruned);
    rewiring_.grow(scalars.seed, scalars.step, values, columns, rows);
    if (call_.outputs.size() == 6)
      std::fill_n(reinterpret_cast<T*>(call_.outputs[5].data), call_.outputs[5].type.elements(), T{});
  }

 private:
  Call call_;
  Rewiring<T> rewiring_;
};

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
                                     return std::make_unique<Rewire<double>>(arguments);
                                   return std::make_unique<Rewire<float>>(arguments);
                                 }};

}  // namespace snug::backends::reference
