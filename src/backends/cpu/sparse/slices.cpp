#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels.h"
#include "backends/cpu/onednn/convolution.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/sparse/conv2d.h"
#include "backends/cpu/sparse/expansion.h"

// The weight gradient by expansion, some output channels at a time: of the dense gradient, the largest part of the workspace,
// only a slice exists at a time. The slice's channels of dy go through the workspace, because oneDNN needs adjacent pixels
// contiguous.

namespace snug::backends::cpu {

namespace {

constexpr std::int64_t kBlock = 16;
// The approximate limit of a slice of the gradient.
constexpr std::int64_t kSliceBytes = 150'000;

// Output channels of a slice: whole blocks that divide them all.
std::int64_t slice_width(const Shape& weight) {
  const std::int64_t channel_bytes = weight.elements() / weight[0] * static_cast<std::int64_t>(sizeof(float));
  std::int64_t width = weight[0];
  while (width % (2 * kBlock) == 0 && width * channel_bytes > kSliceBytes) width /= 2;
  return width;
}

Type with_channels(const Type& type, std::size_t dim, std::int64_t channels) {
  std::vector<std::int64_t> dims(type.shape.dims().begin(), type.shape.dims().end());
  dims[dim] = channels;
  return {.dtype = type.dtype, .shape = Shape(std::span<const std::int64_t>(dims)), .layout = Layout::channels_last()};
}

struct Slices {
  std::int64_t width;
  Type dy_slice;
  dnnl::convolution_backward_weights::primitive_desc description;

  Slices(const Type& dy, const Type& x, const Attributes& attributes)
      : width(slice_width(ops::SparseSlot::from(attributes).shape)), dy_slice(with_channels(dy, 1, width)) {
    Type weight{.dtype = x.dtype, .shape = ops::SparseSlot::from(attributes).shape, .layout = Layout::channels_last()};
    weight = with_channels(weight, 0, width);
    const Convolution conv(x, weight, dy_slice, attributes);
    description = conv.backward_weights(conv.wanted_gradient());
  }

  struct Pieces {
    std::byte *alone, *gradient, *tables, *scratchpad;
  };
  Pieces cut(WorkspaceCutter& cutter, const SparsePart& part) const {
    return {.alone = cutter.cut(dy_slice.bytes()),
            .gradient = cutter.cut(size_of(description.diff_weights_desc())),
            .tables = cutter.cut(position_tables_size(part)),
            .scratchpad = cutter.cut(size_of(description.scratchpad_desc()))};
  }
};

KernelMatch match(const KernelQuery& query) {
  for (const Type* type : {&query.inputs[0], &query.inputs[1]}) {
    if (auto reason = objection(*type)) return Refuse{*reason};
    if (type->layout.kind != Layout::Kind::channels_last) return Refuse{to_string(*type) + " does not lie channels last"};
  }
  const std::int64_t channels = query.inputs[0].shape[1];
  if (slice_width(ops::SparseSlot::from(query.attributes).shape) == channels)
    return Refuse{fmt::format("{} channels are one slice", channels)};
  try {
    const OmpThreads scope(query.threads);
    const Slices slices(query.inputs[0], query.inputs[1], query.attributes);
    WorkspaceCutter cutter;
    slices.cut(cutter, whole_part(ops::SparseSlot::from(query.attributes), Operand{}, Operand{}));
    return Accept{.workspace = cutter.used(),
                  .numerics = "onednn_slices",
                  .slowdown = 1.1,
                  .is_reference = is_reference(slices.description)};
  } catch (const dnnl::error& error) {
    return Refuse{fmt::format("oneDNN: {}", error.message)};
  }
}

// Copies a slice of the channels of all pixels, contiguously.
std::unique_ptr<BoundKernel> gather_slice(const Type& dy, const std::byte* from, std::int64_t channel, std::int64_t width,
                                          std::byte* to, int threads) {
  const std::int64_t element = bits_per_element(dy.dtype) / 8;
  return make_bound([from = from + channel * element, to, pixels = dy.elements() / dy.shape[1], all = dy.shape[1] * element,
                     slice = width * element, threads] {
    for_each_part(pixels, threads, 16, [&](int, Range part) {
      for (std::int64_t p = part.begin; p < part.end; ++p)
        std::memcpy(to + p * slice, from + p * all, static_cast<std::size_t>(slice));
    });
  });
}

std::unique_ptr<BoundKernel> bind(const KernelArguments& arguments) {
  const OmpThreads scope(arguments.threads);
  const Type& dy = arguments.inputs[0].type;
  const Slices slices(dy, arguments.inputs[1].type, arguments.attributes);
  const auto& description = slices.description;
  SparsePart part = whole_part(ops::SparseSlot::from(arguments.attributes), arguments.inputs[2], arguments.inputs[3]);
  WorkspaceCutter cutter(arguments.workspace.data());
  const Slices::Pieces pieces = slices.cut(cutter, part);
  auto chain = std::make_unique<PrimitiveChain>();
  chain->add_action(begin_gradient(arguments));
  for (std::int64_t channel = 0; channel < dy.shape[1]; channel += slices.width) {
    part.row_begin = channel;
    part.row_end = channel + slices.width;
    chain->add_action(gather_slice(dy, arguments.inputs[0].data, channel, slices.width, pieces.alone, arguments.threads));
    chain->add(dnnl::convolution_backward_weights(description),
               {{DNNL_ARG_DIFF_DST, memory_at(description.diff_dst_desc(), pieces.alone)},
                {DNNL_ARG_SRC, memory_at(description.src_desc(), arguments.inputs[1].data)},
                {DNNL_ARG_DIFF_WEIGHTS, memory_at(description.diff_weights_desc(), pieces.gradient)},
                {DNNL_ARG_SCRATCHPAD, memory_at(description.scratchpad_desc(), pieces.scratchpad)}});
    chain->add_action(gather_gradient(part, description.diff_weights_desc(), pieces.gradient, arguments.outputs[0].type.dtype,
                                      arguments.outputs[0].data, pieces.tables, arguments.threads));
  }
  return chain;
}

}  // namespace

constinit const KernelDef onednn_sparse_conv2d_grad_weight_slices{
    .name = "onednn_sparse_conv2d_grad_weight_slices", .op = "sparse_conv2d_grad_weight", .match = match, .bind = bind};

}  // namespace snug::backends::cpu
