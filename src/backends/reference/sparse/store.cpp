#include "backends/reference/call.h"
#include "backends/reference/kernels.h"
#include "backends/rewiring.h"
#include "backends/sparse_store.h"

namespace snug::backends::reference {

namespace {

// Its lists are allocated when it is bound.
class Pattern final : public BoundKernel {
 public:
  explicit Pattern(const KernelArguments& arguments)
      : grid_(ops::SparseGrid::from(arguments.attributes)),
        nonzeros_(arguments.attributes.integers("tensor_nonzeros")),
        scalars_(arguments.inputs[2]),
        columns_(arguments.outputs[0]),
        rows_(arguments.outputs[1]) {}

  void run() override {
    Scalars scalars;
    std::memcpy(&scalars, scalars_.data, sizeof scalars);
    const auto size = static_cast<std::size_t>(columns_.type.bytes().count());
    draw_pattern(grid_, nonzeros_, scalars.seed, {reinterpret_cast<std::uint8_t*>(columns_.data), size},
                 reinterpret_cast<std::int32_t*>(rows_.data));
  }

 private:
  ops::SparseGrid grid_;
  std::vector<std::int64_t> nonzeros_;
  Operand scalars_, columns_, rows_;
};

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

constexpr Signature kPattern{.inputs = {Element::packed, Element::index, Element::scalars},
                             .outputs = {Element::packed, Element::index}};
constexpr Signature kValues{.inputs = {Element::real, Element::packed, Element::index, Element::scalars}};
constexpr Signature kRewire{
    .inputs = {Element::real, Element::packed, Element::index, Element::metrics, Element::scalars, Element::real},
    .outputs = {Element::real, Element::packed, Element::index, Element::metrics, Element::metrics, Element::real}};

}  // namespace

constinit const KernelDef init_sparse_pattern{.name = "reference_init_sparse_pattern",
                                              .op = "init_sparse_pattern",
                                              .match = [](const KernelQuery& query) { return match_operands(kPattern, query); },
                                              .bind = [](const KernelArguments& arguments) -> std::unique_ptr<BoundKernel> {
                                                return std::make_unique<Pattern>(arguments);
                                              }};
constinit const KernelDef init_sparse = define<[]<typename T>() { return run_values<T>; }, kValues>("reference_init_sparse");
constinit const KernelDef rewire{.name = "reference_rewire",
                                 .op = "rewire",
                                 .match = [](const KernelQuery& query) { return match_operands(kRewire, query); },
                                 .bind = [](const KernelArguments& arguments) -> std::unique_ptr<BoundKernel> {
                                   if (arguments.inputs[0].type.dtype == DType::f64)
                                     return std::make_unique<BoundRewiring<double>>(arguments);
                                   return std::make_unique<BoundRewiring<float>>(arguments);
                                 }};

}  // namespace snug::backends::reference
