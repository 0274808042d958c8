#include "backends/cpu/kernels.h"
#include "backends/cpu/pairs/pair_gradient.h"
#include "backends/cpu/sparse/conv2d.h"
#include "backends/cpu/storage.h"
#include "backends/sparse_store.h"

// The paired weight gradient, of which each thread keeps the nonzeros: there is no dense gradient.

namespace snug::backends::cpu {

namespace {

using ops::Conv2dGeometry;
using ops::SparseSlot;

PairCut cut_of(const Type& x, const Attributes& attributes, int threads) {
  return {Conv2dGeometry::from(x.shape, SparseSlot::from(attributes).shape, attributes), threads};
}

KernelMatch match(const KernelQuery& query) {
  const PairCut cut = cut_of(query.inputs[1], query.attributes, query.threads);
  if (auto reason = pair_objection(query.inputs[0], query.inputs[1], query.outputs[0], cut.g)) return Refuse{*reason};
  return Accept{.workspace = cut.workspace(query.threads), .numerics = "bf16_pairs"};
}

struct SparseGradient {
  PairGradient gradient;
  SparseSlot slot;
  const std::uint8_t* columns;
  const std::int32_t* rows;  // of the slot
  Bfloat16* out;

  void operator()() const {
    gradient.make([this](std::int64_t first_row, std::int64_t first_tap, const float* sums) {
      gather(first_row, first_tap * gradient.cut().g.in_channels, sums);
    });
  }

 private:
  // Adds the sums, rounded to the gradient's type.
  void gather(std::int64_t first_row, std::int64_t begin, const float* sums) const {
    const std::int64_t width = gradient.cut().columns();
    for (std::int64_t row = first_row; row < first_row + kGradientRows; ++row, sums += width) {
      for (std::int64_t k = rows[row]; k < rows[row + 1]; ++k) {
        const std::int64_t column = column_at(columns, slot.bits, k) - begin;
        if (column < 0 || column >= width) continue;
        out[k] = stored_float<Bfloat16>(to_float(out[k]) + to_float(stored_float<Bfloat16>(sums[column])));
      }
    }
  }
};

std::unique_ptr<BoundKernel> bind(const KernelArguments& arguments) {
  const SparseSlot slot = SparseSlot::from(arguments.attributes);
  auto chain = std::make_unique<PrimitiveChain>();
  chain->add_action(begin_gradient(arguments));
  chain->add_action(make_bound(SparseGradient{
      .gradient = {cut_of(arguments.inputs[1].type, arguments.attributes, arguments.threads), arguments.inputs[0].data,
                   arguments.inputs[1].data, arguments.workspace.data(), arguments.threads},
      .slot = slot,
      .columns = reinterpret_cast<const std::uint8_t*>(arguments.inputs[2].data),
      .rows = reinterpret_cast<const std::int32_t*>(arguments.inputs[3].data) + slot.first_row,
      .out = reinterpret_cast<Bfloat16*>(arguments.outputs[0].data)}));
  return chain;
}

}  // namespace

constinit const KernelDef pairs_sparse_conv2d_grad_weight{
    .name = "pairs_sparse_conv2d_grad_weight", .op = "sparse_conv2d_grad_weight", .match = match, .bind = bind};

}  // namespace snug::backends::cpu
