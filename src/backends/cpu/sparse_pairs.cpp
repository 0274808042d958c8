#include <algorithm>

#include "backends/cpu/bf16_gradient.h"
#include "backends/cpu/onednn.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/sparse_conv2d.h"
#include "backends/cpu/storage.h"
#include "backends/sparse_store.h"
#include "ops/conv2d.h"

// The weight gradient in bf16 on processors that multiply pairs of such numbers. A thread makes some rows of the gradient (output
// channels) from all images and picks their nonzeros: no dense gradient, no sums of several threads, no barriers in between, so
// that a thread that the system takes away holds up nobody but itself. Each sum is made by one thread in one order, whatever
// their number.

namespace snug::backends::cpu {

namespace {

using ops::Conv2dGeometry;
using ops::SparseSlot;

// Paired images of this many bytes stay in the first cache while all input channels go by.
constexpr std::int64_t kPairedBytes = std::int64_t{16} * 1024;

bool has_bf16_pairs() {
#if defined(__x86_64__)
  return is_compiled_for_bf16_pairs() && __builtin_cpu_supports("avx512bf16") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0;
#else
  return false;
#endif
}

// How the work is cut: an item is kGradientRows output channels and some rows of the window.
struct Cut {
  Conv2dGeometry g;
  std::int64_t images;       // that are paired together
  std::int64_t window_rows;  // of one item

  Cut(const Shape& x, const Attributes& attributes, int threads)
      : g(Conv2dGeometry::from(x, SparseSlot::from(attributes).shape, attributes)),
        images(std::clamp<std::int64_t>(kPairedBytes / image_bytes(), 1, g.batch)),
        window_rows(row_tiles() < threads ? 1 : g.kernel_height) {}

  std::int64_t row_tiles() const { return g.out_channels / kGradientRows; }
  std::int64_t items() const { return row_tiles() * (g.kernel_height / window_rows); }
  std::int64_t image_bytes() const {
    return g.out_height * ((g.out_width + 1) / 2) * kGradientRows * static_cast<std::int64_t>(sizeof(std::uint32_t));
  }
  // Columns of the gradient that an item makes.
  std::int64_t columns() const { return window_rows * g.kernel_width * g.in_channels; }
};

// The threads' pieces of the workspace.
struct PairPieces {
  Bytes pairs, sums;
  std::byte* begin;

  PairPieces(WorkspaceCutter& cutter, const Cut& cut, int threads)
      : pairs(round_up(Bytes(cut.images * cut.image_bytes()), kAlignment)),
        sums(round_up(Bytes(kGradientRows * cut.columns() * static_cast<std::int64_t>(sizeof(float))), kAlignment)),
        begin(cutter.cut(Bytes((pairs + sums).count() * threads))) {}
  std::byte* of(int thread) const { return begin + thread * (pairs + sums).count(); }
  std::uint32_t* pairs_of(int thread) const { return reinterpret_cast<std::uint32_t*>(of(thread)); }
  float* sums_of(int thread) const { return reinterpret_cast<float*>(of(thread) + pairs.count()); }
};

KernelMatch match(const KernelQuery& query) {
  if (!has_bf16_pairs()) return Refuse{"the processor has no AVX512_BF16"};
  for (const Type* type : {&query.inputs[0], &query.inputs[1], &query.outputs[0]}) {
    if (type->dtype != DType::bf16) return Refuse{to_string(*type) + " is not bf16"};
  }
  for (const Type* type : {&query.inputs[0], &query.inputs[1]}) {
    if (type->layout.kind != Layout::Kind::channels_last) return Refuse{to_string(*type) + " does not lie channels last"};
  }
  const Cut cut(query.inputs[1].shape, query.attributes, query.threads);
  if (cut.g.out_channels % kGradientRows != 0 || cut.g.in_channels % kGradientLanes != 0 || cut.g.groups != 1)
    return Refuse{fmt::format("{} to {} channels do not fill vectors", cut.g.in_channels, cut.g.out_channels)};
  WorkspaceCutter cutter;
  const PairPieces pieces(cutter, cut, query.threads);
  return Accept{.workspace = cutter.used(), .numerics = "bf16_pairs"};
}

struct PairedGradient {
  Cut cut;
  SparseSlot slot;
  PairPieces pieces;
  const std::uint16_t *dy, *x;
  const std::uint8_t* columns;
  const std::int32_t* rows;  // of the slot
  Bfloat16* out;
  int threads;

  void operator()() const {
    for_each_part(cut.items(), threads, 1, [&](int thread, Range part) {
      for (std::int64_t item = part.begin; item < part.end; ++item) {
        const std::int64_t first_row = item % cut.row_tiles() * kGradientRows;
        const std::int64_t window_row = item / cut.row_tiles() * cut.window_rows;
        float* sums = pieces.sums_of(thread);
        std::fill_n(sums, kGradientRows * cut.columns(), 0.0F);
        for (std::int64_t n = 0; n < cut.g.batch; n += cut.images)
          add_images(n, std::min(cut.images, cut.g.batch - n), first_row, window_row, pieces.pairs_of(thread), sums);
        gather(first_row, window_row, sums);
      }
    });
  }

 private:
  void add_images(std::int64_t first, std::int64_t images, std::int64_t first_row, std::int64_t window_row, std::uint32_t* pairs,
                  float* sums) const {
    const Conv2dGeometry& g = cut.g;
    pair_pixels(dy + first * g.out_height * g.out_width * g.out_channels + first_row, images, g.out_height, g.out_width,
                g.out_channels, pairs);
    const std::uint16_t* inputs = x + first * g.in_height * g.in_width * g.in_channels;
    for (std::int64_t row = 0; row < cut.window_rows; ++row) {
      for (std::int64_t column = 0; column < g.kernel_width; ++column) {
        const GradientImages of{.images = images,
                                .out_height = g.out_height,
                                .out_width = g.out_width,
                                .in_height = g.in_height,
                                .in_width = g.in_width,
                                .in_channels = g.in_channels,
                                .stride_height = g.stride_height,
                                .stride_width = g.stride_width,
                                .top = (window_row + row) * g.dilation_height - g.padding_height,
                                .left = column * g.dilation_width - g.padding_width};
        float* tap = sums + (row * g.kernel_width + column) * g.in_channels;
        for (std::int64_t channel = 0; channel < g.in_channels;) {
          const int vectors = g.in_channels - channel >= 2 * kGradientLanes ? 2 : 1;
          add_pair_products(of, pairs, inputs + channel, vectors, tap + channel, cut.columns());
          channel += vectors * kGradientLanes;
        }
      }
    }
  }

  // Rounded to the gradient's type, and added.
  void gather(std::int64_t first_row, std::int64_t window_row, const float* sums) const {
    const std::int64_t begin = window_row * cut.g.kernel_width * cut.g.in_channels;
    for (std::int64_t row = first_row; row < first_row + kGradientRows; ++row, sums += cut.columns()) {
      for (std::int64_t k = rows[row]; k < rows[row + 1]; ++k) {
        const std::int64_t column = column_at(columns, slot.bits, k) - begin;
        if (column < 0 || column >= cut.columns()) continue;
        out[k] = stored_float<Bfloat16>(to_float(out[k]) + to_float(stored_float<Bfloat16>(sums[column])));
      }
    }
  }
};

std::unique_ptr<BoundKernel> bind(const KernelArguments& arguments) {
  const Cut cut(arguments.inputs[1].type.shape, arguments.attributes, arguments.threads);
  const SparseSlot slot = SparseSlot::from(arguments.attributes);
  WorkspaceCutter cutter(arguments.workspace.data());
  auto chain = std::make_unique<PrimitiveChain>();
  chain->add_action(begin_gradient(arguments));
  chain->add_action(
      make_bound(PairedGradient{.cut = cut,
                                .slot = slot,
                                .pieces = PairPieces(cutter, cut, arguments.threads),
                                .dy = reinterpret_cast<const std::uint16_t*>(arguments.inputs[0].data),
                                .x = reinterpret_cast<const std::uint16_t*>(arguments.inputs[1].data),
                                .columns = reinterpret_cast<const std::uint8_t*>(arguments.inputs[2].data),
                                .rows = reinterpret_cast<const std::int32_t*>(arguments.inputs[3].data) + slot.first_row,
                                .out = reinterpret_cast<Bfloat16*>(arguments.outputs[0].data),
                                .threads = arguments.threads}));
  return chain;
}

}  // namespace

constinit const KernelDef pairs_sparse_conv2d_grad_weight{
    .name = "pairs_sparse_conv2d_grad_weight", .op = "sparse_conv2d_grad_weight", .match = match, .bind = bind};

}  // namespace snug::backends::cpu
