#include "backends/reference/call.h"
#include "backends/reference/kernels.h"
#include "ir/example_rows.h"
#include "ops/random_draws.h"

namespace snug::backends::reference {

namespace {

template <typename T>
void run_dropout(const Call& call) {
  const auto x = call.elementwise<T>(0);
  const Result<T> y = call.result<T>();
  const Scalars scalars = call.scalars(1);
  const double probability = call.attributes.real("probability");
  const auto key = static_cast<std::uint64_t>(call.attributes.integer("key"));
  const auto per_example = static_cast<std::uint64_t>(elements_per_example(call.outputs[0].type, call.attributes));
  const PositionMap to_logical = PositionMap::to_row_major(call.outputs[0].type);
  parallel_for(call, y.elements(), [&](std::int64_t i) {
    // Row-major within the batch is row-major within the example, after the examples before it.
    const std::uint64_t element = scalars.first_example * per_example + static_cast<std::uint64_t>(to_logical(i));
    const std::uint32_t word = ops::dropout_word(scalars.seed, scalars.step, key, element);
    y.set(i, ops::dropout_keeps(word, probability) ? x[i] / (1.0 - probability) : 0.0);
  });
}

constexpr Signature kSignature{.inputs = {Element::real, Element::scalars}};

}  // namespace

constinit const KernelDef dropout = define<[]<typename T>() { return run_dropout<T>; }, kSignature>("reference_dropout");

}  // namespace snug::backends::reference
