#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels.h"
#include "backends/cpu/onednn/conv2d.h"
#include "backends/cpu/onednn/convolution.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/pieces.h"
#include "base/error.h"

// A convolution's gradients with a fraction of the workspace. Unsliced they need a workspace as large as the weights: the data
// gradient for a copy in another layout, the weight gradient for what it adds to a sum and for the threads' partial sums. A slice
// of channels needs a slice of that: input channels of dx, which read only their own weights, or output channels of dw, which
// read only their own dy. oneDNN needs adjacent pixels contiguous, so a few images' channels of the slice go through the
// workspace, and the slice's pixels are copied from dy or to dx.

namespace snug::backends::cpu {

namespace {

constexpr std::int64_t kBlock = 16;  // channels in a block of the weights' layouts, or two of 8

// How many channels a slice has.
enum class Slices : std::uint8_t { quarters, blocks };

std::int64_t width_of(Slices slices, std::int64_t channels) {
  return slices == Slices::blocks ? kBlock : (channels / 4 + kBlock - 1) / kBlock * kBlock;
}

std::optional<std::string> objection_to_slicing(const Type& weight, std::int64_t channels, std::int64_t groups, Slices slices) {
  if (weight.layout.kind != Layout::Kind::opaque) return "only weights in one of oneDNN's layouts are cut into slices";
  if (groups != 1) return "the convolution has groups";
  if (channels % kBlock != 0) return fmt::format("{} channels are not whole blocks of {}", channels, kBlock);
  const std::int64_t width = width_of(slices, channels);
  if (slices == Slices::quarters && (width == kBlock || channels % width != 0))
    return fmt::format("{} channels have no quarters of whole blocks", channels);
  if (width >= channels) return fmt::format("{} channels are one slice", channels);
  return std::nullopt;
}

Type with_dim(Type type, std::size_t dim, std::int64_t size) {
  std::vector<std::int64_t> dims(type.shape.dims().begin(), type.shape.dims().end());
  dims[dim] = size;
  type.shape = Shape(std::span<const std::int64_t>(dims));
  return type;
}

std::int64_t image_elements(const Type& type) { return type.elements() / type.shape[0]; }
std::int64_t element_bytes(const Type& type) { return bits_per_element(type.dtype) / 8; }
std::int64_t image_bytes(const Type& type) { return image_elements(type) * element_bytes(type); }

// As many images at a time as take about as many bytes as the slice's weights.
std::int64_t images_at_a_time(Bytes weights, const Type& slice_of_batch) {
  return std::clamp<std::int64_t>(weights.count() / image_bytes(slice_of_batch), 1, slice_of_batch.shape[0]);
}

// Smaller slices copy more and give the library less work at once. In docs/performance.md whole steps were 0 to 11% slower with
// these kernels in a quarter of a network's layers, within the noise of the machine.
KernelMatch accept_slices(Slices slices, Bytes workspace, const dnnl::primitive_desc_base& description) {
  const bool quarters = slices == Slices::quarters;
  return Accept{.workspace = workspace,
                .numerics = quarters ? "onednn_quarters" : "onednn_blocks",
                .slowdown = quarters ? 1.1 : 1.2,
                .is_reference = is_reference(description)};
}

// Between all channels of some pixels, and a contiguous slice of them; in bytes.
struct PixelSlice {
  std::int64_t pixels, all_bytes, slice_bytes;
};

std::unique_ptr<BoundKernel> gather(const PixelSlice& slice, const std::byte* all, std::byte* alone, int threads) {
  return make_bound([slice, all, alone, threads] {
    for_each_part(slice.pixels, threads, 1, [&](int, Range part) {
      for (std::int64_t p = part.begin; p < part.end; ++p)
        std::copy_n(all + p * slice.all_bytes, slice.slice_bytes, alone + p * slice.slice_bytes);
    });
  });
}

std::unique_ptr<BoundKernel> scatter(const PixelSlice& slice, const std::byte* alone, std::byte* all, int threads) {
  return make_bound([slice, all, alone, threads] {
    for_each_part(slice.pixels, threads, 1, [&](int, Range part) {
      for (std::int64_t p = part.begin; p < part.end; ++p)
        std::copy_n(alone + p * slice.slice_bytes, slice.slice_bytes, all + p * slice.all_bytes);
    });
  });
}

// A primitive for whole groups of images, and one for the rest of the batch.
template <typename Description>
struct Grouped {
  std::int64_t batch, group;
  Description whole, rest;  // `rest` is empty where nothing is left over

  template <typename Describe>
  Grouped(std::int64_t examples, std::int64_t at_a_time, const Describe& describe)
      : batch(examples), group(at_a_time), whole(describe(at_a_time)) {
    if (examples % at_a_time != 0) rest = describe(examples % at_a_time);
  }
  std::int64_t count(std::int64_t first) const { return std::min(group, batch - first); }
  const Description& of(std::int64_t first) const { return count(first) == group ? whole : rest; }
  Bytes scratchpad() const {
    return std::max(size_of(whole.scratchpad_desc()), batch % group == 0 ? Bytes(0) : size_of(rest.scratchpad_desc()));
  }
};

// ---- data gradient: (dy, w) -> dx, a slice of input channels at a time

struct DataSlices {
  using Description = dnnl::convolution_backward_data::primitive_desc;
  Type dy, weight, dx;
  std::int64_t width;
  Type dx_slice, weight_slice;
  Grouped<Description> primitives;

  DataSlices(const Type& dy_type, const Type& weight_type, const Type& dx_type, const Attributes& attributes, Slices slices)
      : dy(dy_type),
        weight(weight_type),
        dx(dx_type),
        width(width_of(slices, dx.shape[1])),
        dx_slice(with_dim(dx, 1, width)),
        weight_slice(with_dim(weight, 1, width)),
        primitives(dx.shape[0], images_at_a_time(size_of(descriptor(weight_slice)), dx_slice), [&](std::int64_t images) {
          return Convolution(with_dim(dx_slice, 0, images), weight_slice, with_dim(dy, 0, images), attributes).backward_data();
        }) {}

  struct Pieces {
    std::byte *packed, *alone, *scratchpad;
  };
  Pieces cut(WorkspaceCutter& cutter) const {
    return {.packed = cutter.cut(packed_size()),
            .alone = cutter.cut(Bytes(image_bytes(dx_slice) * primitives.group)),
            .scratchpad = cutter.cut(primitives.scratchpad())};
  }
  Bytes packed_size() const {
    const Bytes whole = size_of(primitives.whole.weights_desc());
    return primitives.batch % primitives.group == 0 ? whole : std::max(whole, size_of(primitives.rest.weights_desc()));
  }
};

template <Slices Kind>
KernelMatch match_grad_input(const KernelQuery& query) {
  if (accumulates(query.attributes)) return Refuse{"oneDNN's data gradient cannot add to its output"};
  const Type& dx = query.outputs[0];
  if (auto reason = objection_to_slicing(query.inputs[1], dx.shape[1], query.attributes.integer("groups"), Kind))
    return Refuse{*reason};
  return accept_if_possible(query, [&]() -> KernelMatch {
    WorkspaceCutter cutter;
    const DataSlices data_slices(query.inputs[0], query.inputs[1], dx, query.attributes, Kind);
    data_slices.cut(cutter);
    return accept_slices(Kind, cutter.used(), data_slices.primitives.whole);
  });
}

template <Slices Kind>
std::unique_ptr<BoundKernel> bind_grad_input(const KernelArguments& arguments) {
  const OmpThreads scope(arguments.threads);
  const DataSlices slices(arguments.inputs[0].type, arguments.inputs[1].type, arguments.outputs[0].type, arguments.attributes,
                          Kind);
  const auto& primitives = slices.primitives;
  WorkspaceCutter cutter(arguments.workspace.data());
  const DataSlices::Pieces pieces = slices.cut(cutter);
  auto chain = std::make_unique<PrimitiveChain>();
  const dnnl::memory::desc weight = descriptor(slices.weight);
  const std::int64_t channels = slices.dx.shape[1];
  for (std::int64_t channel = 0; channel < channels; channel += slices.width) {
    dnnl::memory::dims dims = weight.dims();
    dims[1] = slices.width;
    const dnnl::memory::desc part = weight.submemory_desc(dims, {0, channel, 0, 0});
    for (std::int64_t first = 0; first < primitives.batch; first += primitives.group) {
      const auto& description = primitives.of(first);
      const std::int64_t images = primitives.count(first);
      const dnnl::memory packed = memory_at(description.weights_desc(), pieces.packed);
      if (first == 0 || primitives.of(first - primitives.group).weights_desc() != description.weights_desc())
        chain->add_reorder(memory_at(part, arguments.inputs[1].data), packed);
      chain->add(
          dnnl::convolution_backward_data(description),
          {{DNNL_ARG_DIFF_DST, memory_at(description.diff_dst_desc(), arguments.inputs[0].data + first * image_bytes(slices.dy))},
           {DNNL_ARG_WEIGHTS, packed},
           {DNNL_ARG_DIFF_SRC, memory_at(description.diff_src_desc(), pieces.alone)},
           {DNNL_ARG_SCRATCHPAD, memory_at(description.scratchpad_desc(), pieces.scratchpad)}});
      const std::int64_t bytes = element_bytes(slices.dx);
      chain->add_action(scatter({.pixels = images * image_elements(slices.dx) / channels,
                                 .all_bytes = channels * bytes,
                                 .slice_bytes = slices.width * bytes},
                                pieces.alone, arguments.outputs[0].data + first * image_bytes(slices.dx) + channel * bytes,
                                arguments.threads));
    }
  }
  return chain;
}

// ---- weight gradient: (dy, x, sum?) -> dw, a slice of output channels at a time. These lie one after the other in dw.

struct WeightSlices {
  using Description = dnnl::convolution_backward_weights::primitive_desc;
  Type dy, x, dw;
  bool adds;
  std::int64_t width;
  Type dy_slice, dw_slice;
  Grouped<Description> primitives;

  WeightSlices(const Type& dy_type, const Type& x_type, const Type& dw_type, const Attributes& attributes, Slices slices)
      : dy(dy_type),
        x(x_type),
        dw(dw_type),
        adds(accumulates(attributes)),
        width(width_of(slices, dw.shape[0])),
        dy_slice(with_dim(dy, 1, width)),
        dw_slice(with_dim(dw, 0, width)),
        primitives(dy.shape[0], images_at_a_time(slice_size(), dy_slice), [&](std::int64_t images) {
          const Convolution conv(with_dim(x, 0, images), dw_slice, with_dim(dy_slice, 0, images), attributes);
          return conv.backward_weights(conv.wanted_gradient());
        }) {}

  // Gradients of groups of images are added, so they must have the same layout.
  bool groups_lie_alike() const {
    return primitives.batch % primitives.group == 0 ||
           primitives.rest.diff_weights_desc() == primitives.whole.diff_weights_desc();
  }
  Bytes slice_size() const { return size_of(descriptor(dw_slice)); }
  Bytes fresh_size() const { return size_of(primitives.whole.diff_weights_desc()); }
  // Made in floats and rounded at the end, or as it is stored.
  bool is_rounded() const { return dw.dtype != DType::f32; }
  bool in_one_go() const { return primitives.batch == primitives.group; }

  struct Pieces {
    std::byte *alone, *total, *fresh, *scratchpad;
  };
  // `total`: the slice's gradient of all images, before it is rounded and added to the sum; without either, dw itself. `fresh`:
  // that of a group of images after the first.
  Pieces cut(WorkspaceCutter& cutter) const {
    return {.alone = cutter.cut(Bytes(image_bytes(dy_slice) * primitives.group)),
            .total = adds || is_rounded() ? cutter.cut(fresh_size()) : nullptr,
            .fresh = in_one_go() ? nullptr : cutter.cut(fresh_size()),
            .scratchpad = cutter.cut(primitives.scratchpad())};
  }
};

template <Slices Kind>
KernelMatch match_grad_weight(const KernelQuery& query) {
  const Type& dw = query.outputs[0];
  if (auto reason = objection_to_slicing(dw, dw.shape[0], query.attributes.integer("groups"), Kind)) return Refuse{*reason};
  return accept_if_possible(query, [&]() -> KernelMatch {
    WorkspaceCutter cutter;
    const WeightSlices weight_slices(query.inputs[0], query.inputs[1], dw, query.attributes, Kind);
    if (!weight_slices.groups_lie_alike()) return Refuse{"oneDNN's layout depends on the number of images"};
    weight_slices.cut(cutter);
    return accept_slices(Kind, cutter.used(), weight_slices.primitives.whole);
  });
}

template <Slices Kind>
std::unique_ptr<BoundKernel> bind_grad_weight(const KernelArguments& arguments) {
  const OmpThreads scope(arguments.threads);
  const WeightSlices slices(arguments.inputs[0].type, arguments.inputs[1].type, arguments.outputs[0].type, arguments.attributes,
                            Kind);
  const auto& primitives = slices.primitives;
  WorkspaceCutter cutter(arguments.workspace.data());
  const WeightSlices::Pieces pieces = slices.cut(cutter);
  auto chain = std::make_unique<PrimitiveChain>();
  const std::int64_t channels = slices.dw.shape[0];
  const std::int64_t slice_floats = slices.fresh_size().count() / 4;
  const int threads = arguments.threads;
  for (std::int64_t channel = 0; channel < channels; channel += slices.width) {
    const std::int64_t begin = channel / slices.width * slices.slice_size().count();  // of the slice in dw
    std::byte* out = arguments.outputs[0].data + begin;
    const std::byte* sum = slices.adds ? arguments.inputs[2].data + begin : nullptr;
    std::byte* total = pieces.total == nullptr ? out : pieces.total;
    for (std::int64_t first = 0; first < primitives.batch; first += primitives.group) {
      const auto& description = primitives.of(first);
      const std::int64_t bytes = element_bytes(slices.dy);
      chain->add_action(gather({.pixels = primitives.count(first) * image_elements(slices.dy) / channels,
                                .all_bytes = channels * bytes,
                                .slice_bytes = slices.width * bytes},
                               arguments.inputs[0].data + first * image_bytes(slices.dy) + channel * bytes, pieces.alone,
                               threads));
      chain->add(dnnl::convolution_backward_weights(description),
                 {{DNNL_ARG_DIFF_DST, memory_at(description.diff_dst_desc(), pieces.alone)},
                  {DNNL_ARG_SRC, memory_at(description.src_desc(), arguments.inputs[1].data + first * image_bytes(slices.x))},
                  {DNNL_ARG_DIFF_WEIGHTS, memory_at(description.diff_weights_desc(), first == 0 ? total : pieces.fresh)},
                  {DNNL_ARG_SCRATCHPAD, memory_at(description.scratchpad_desc(), pieces.scratchpad)}});
      if (first > 0) chain->add_action(add_elements(DType::f32, total, pieces.fresh, total, slice_floats, threads));
    }
    if (slices.is_rounded()) {
      chain->add_action(place_gradient(primitives.whole.diff_weights_desc(), total, slices.dw_slice, 1, sum, out, threads));
    } else if (slices.adds) {
      chain->add_action(add_elements(DType::f32, sum, total, out, slice_floats, threads));
    }
  }
  return chain;
}

}  // namespace

constinit const KernelDef onednn_conv2d_grad_input_quarters{.name = "onednn_conv2d_grad_input_quarters",
                                                            .op = "conv2d_grad_input",
                                                            .match = match_grad_input<Slices::quarters>,
                                                            .bind = bind_grad_input<Slices::quarters>};
constinit const KernelDef onednn_conv2d_grad_input_blocks{.name = "onednn_conv2d_grad_input_blocks",
                                                          .op = "conv2d_grad_input",
                                                          .match = match_grad_input<Slices::blocks>,
                                                          .bind = bind_grad_input<Slices::blocks>};
constinit const KernelDef onednn_conv2d_grad_weight_quarters{.name = "onednn_conv2d_grad_weight_quarters",
                                                             .op = "conv2d_grad_weight",
                                                             .match = match_grad_weight<Slices::quarters>,
                                                             .bind = bind_grad_weight<Slices::quarters>};
constinit const KernelDef onednn_conv2d_grad_weight_blocks{.name = "onednn_conv2d_grad_weight_blocks",
                                                           .op = "conv2d_grad_weight",
                                                           .match = match_grad_weight<Slices::blocks>,
                                                           .bind = bind_grad_weight<Slices::blocks>};

}  // namespace snug::backends::cpu
