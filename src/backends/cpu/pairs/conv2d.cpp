#include "backends/cpu/onednn/conv2d.h"

#include <fmt/format.h>

#include "backends/cpu/kernels.h"
#include "backends/cpu/layout_map.h"
#include "backends/cpu/pairs/pair_gradient.h"
#include "backends/cpu/storage.h"

// The paired weight gradient of a dense weight: a thread rounds its rows and writes them to their places in the weight's layout,
// so there is no gradient in floats as large as the weight.

namespace snug::backends::cpu {

namespace {

using ops::Conv2dGeometry;

// Over WRN-28-2's shapes it takes 0.9 of the time of oneDNN's, which can divide the images among any number of threads.
constexpr double kLeastBusy = 0.9;

PairCut cut_of(const Type& x, const Type& gradient, const Attributes& attributes, int threads) {
  return {Conv2dGeometry::from(x.shape, gradient.shape, attributes), threads};
}

// The layout of bf16 weights in training, in which the gradient is written sixteen columns at a time.
bool is_paired(const Type& type) {
  const dnnl::memory::desc layout = descriptor(type);
  return dnnl::memory::desc(layout.dims(), layout.data_type(), dnnl::memory::format_tag::ABcd8b16a2b) == layout;
}

KernelMatch match(const KernelQuery& query) {
  const PairCut cut = cut_of(query.inputs[1], query.outputs[0], query.attributes, query.threads);
  if (auto reason = pair_objection(query.inputs[0], query.inputs[1], query.outputs[0], cut.g)) return Refuse{*reason};
  const Type& gradient = query.outputs[0];
  if (gradient.layout.kind == Layout::Kind::opaque && !is_paired(gradient))
    return Refuse{to_string(gradient) + " does not lie in pairs"};
  if (cut.busy(query.threads) < kLeastBusy)
    return Refuse{fmt::format("{} pieces of work would not keep {} threads busy", cut.items(), query.threads)};
  return Accept{.workspace = cut.workspace(query.threads), .numerics = "bf16_pairs"};
}

struct DenseGradient {
  PairGradient gradient;
  std::optional<LayoutMap> places;  // of another layout than the paired one
  const std::uint16_t* before;      // what is added to; null: nothing
  std::uint16_t* out;

  void operator()() const {
    gradient.make([this](std::int64_t first_row, std::int64_t first_tap, const float* sums) {
      for (std::int64_t tap = 0; tap < gradient.cut().taps; ++tap) {
        const float* of_tap = sums + tap * gradient.cut().g.in_channels;
        if (places) {
          place_each(first_row, first_tap + tap, of_tap);
        } else {
          place_blocks(first_row, first_tap + tap, of_tap);
        }
      }
    });
  }

 private:
  // Blocks of 16 x 16 channels, of which these rows are the first or the second half.
  void place_blocks(std::int64_t first_row, std::int64_t tap, const float* sums) const {
    constexpr std::int64_t kBlockRows = 16, kBlock = kBlockRows * kGradientLanes, kHalf = 2 * kGradientRows;
    const PairCut& cut = gradient.cut();
    const std::int64_t blocks = cut.g.in_channels / kGradientLanes;
    const std::int64_t half = first_row % kBlockRows == 0 ? 0 : kHalf;
    const bool is_alone = half == 0 && first_row + kGradientRows == cut.g.out_channels;
    for (std::int64_t b = 0; b < blocks; ++b, sums += kGradientLanes) {
      const std::int64_t block = ((first_row / kBlockRows * blocks + b) * cut.window() + tap) * kBlock;
      place_paired_sums(sums, cut.columns(), before == nullptr ? nullptr : before + block + half, out + block + half);
      if (!is_alone) continue;
      // The other half is padding of the layout.
      for (std::int64_t pair = 0; pair < kGradientLanes / 2; ++pair)
        std::fill_n(out + block + pair * kPairPitch + kHalf, kHalf, std::uint16_t{0});
    }
  }

  void place_each(std::int64_t first_row, std::int64_t tap, const float* sums) const {
    const PairCut& cut = gradient.cut();
    for (std::int64_t row = 0; row < kGradientRows; ++row, sums += cut.columns()) {
      for (std::int64_t channel = 0; channel < cut.g.in_channels; ++channel) {
        const std::int64_t at = (*places)({first_row + row, channel, tap / cut.g.kernel_width, tap % cut.g.kernel_width, 0});
        const std::uint16_t fresh = bfloat_from_float(sums[channel]);
        out[at] = before == nullptr ? fresh : bfloat_from_float(float_from_bfloat(before[at]) + float_from_bfloat(fresh));
      }
    }
  }
};

std::unique_ptr<BoundKernel> bind(const KernelArguments& arguments) {
  const Operand& x = arguments.inputs[1];
  const Operand& output = arguments.outputs[0];
  const std::byte* before = accumulates(arguments.attributes) ? arguments.inputs[2].data : nullptr;
  return make_bound(DenseGradient{.gradient = {cut_of(x.type, output.type, arguments.attributes, arguments.threads),
                                               arguments.inputs[0].data, x.data, arguments.workspace.data(), arguments.threads},
                                  .places = is_paired(output.type) ? std::nullopt : std::optional(LayoutMap(output.type)),
                                  .before = reinterpret_cast<const std::uint16_t*>(before),
                                  .out = reinterpret_cast<std::uint16_t*>(output.data)});
}

}  // namespace

constinit const KernelDef pairs_conv2d_grad_weight{
    .name = "pairs_conv2d_grad_weight", .op = "conv2d_grad_weight", .match = match, .bind = bind};

}  // namespace snug::backends::cpu
