#include "backends/cpu/half/conv2d.h"

#include "backends/cpu/half/rows.h"
#include "backends/cpu/storage.h"

namespace snug::backends::cpu {

// Measured on WRN-28-2's step of 100 images on two threads: 2 to 6% more processor time with little workspace, up to 9% with the
// least, which leaves the other threads idle.
KernelMatch accept_half(HalfRoom room, Bytes workspace, bool is_reference, DType dtype, int threads) {
  const bool is_compared = dtype == DType::f16;  // bf16 has faster kernels, of which these are not variants
  Accept accept{.workspace = workspace, .numerics = "half", .is_reference = is_reference};
  if (room == HalfRoom::small) {
    accept.numerics = "half_small";
    accept.slowdown = is_compared ? 1.1 : 0;
  } else if (room == HalfRoom::least) {
    accept.numerics = "half_least";
    accept.slowdown = is_compared ? 1.1 * threads : 0;
  }
  return accept;
}

namespace {

// A quarter of the channels, in whole blocks, or a single block; all where these do not divide evenly.
std::int64_t width_of(std::int64_t channels, HalfRoom room) {
  if (room == HalfRoom::fast || channels % kWeightBlock != 0) return channels;
  const std::int64_t quarter = (channels / 4 + kWeightBlock - 1) / kWeightBlock * kWeightBlock;
  const std::int64_t width = room == HalfRoom::least ? kWeightBlock : quarter;
  return channels % width == 0 ? width : channels;
}

}  // namespace

ChannelSlices::ChannelSlices(std::int64_t all, std::int64_t groups, HalfRoom room)
    : channels(all), width(groups != 1 ? all : width_of(all, room)) {}

struct HalfImages::Pieces {
  struct OfThread {
    std::byte *from, *to, *scratchpad;
  };
  std::byte *weights, *bias;
  std::vector<OfThread> of_thread;
  Bytes used;
};

HalfImages::HalfImages(Call call, HalfRoom room, int threads)
    : call_(std::move(call)),
      groups_(call_.attributes.integer("groups")),
      slices_(call_.to.shape[1], groups_, room),
      batch_(call_.from.shape[0], room, threads, image_elements(from_of(1)) + image_elements(to_of(1)), 0) {
  const OmpThreads alone(1);
  weight_layout_ = describe(batch_.group, nullptr).query_md(dnnl::query::weights_md);
  for (const std::int64_t images : batch_.group_sizes()) {
    const dnnl::primitive_desc_base description = describe(images, &weight_layout_);
    scratchpad_ = std::max(scratchpad_, size_of(description.query_md(dnnl::query::scratchpad_md)));
    is_reference_ = is_reference_ || cpu::is_reference(description);
  }
}

Type HalfImages::from_of(std::int64_t images) const { return as_floats(with_dim(call_.from, 0, images)); }
Type HalfImages::to_of(std::int64_t images) const { return as_floats(with_dim(with_dim(call_.to, 0, images), 1, slices_.width)); }

// With the weights in a given layout; by default in the weight's own, where the forward pass reads it, or in oneDNN's choice.
dnnl::primitive_desc_base HalfImages::describe(std::int64_t images, const dnnl::memory::desc* weights) const {
  const std::size_t dim = call_.forward ? 0 : 1;
  const Type weight = as_floats(slices_.is_whole() ? call_.weight : with_dim(call_.weight, dim, slices_.width));
  if (!call_.forward) {
    const Convolution conv(to_of(images), weight, from_of(images), call_.attributes);
    return conv.backward_data(weights == nullptr ? conv.any_weight() : *weights);
  }
  const Convolution conv(from_of(images), weight, to_of(images), call_.attributes);
  std::optional<dnnl::memory::desc> bias;
  if (call_.bias) bias = descriptor(as_floats(with_dim(*call_.bias, 0, slices_.width)));
  const dnnl::memory::desc* bias_layout = bias ? &*bias : nullptr;
  if (weights != nullptr) return conv.forward(*weights, bias_layout);
  try {
    dnnl::primitive_desc_base own = conv.forward(conv.wanted_weight, bias_layout);
    if (is_direct(own)) return own;
  } catch (const dnnl::error&) {
    // Layouts for pairs of 16-bit numbers are not for floats.
  }
  return conv.forward(conv.any_weight(), bias_layout);
}

HalfImages::Pieces HalfImages::cut(std::byte* workspace) const {
  WorkspaceCutter cutter(workspace);
  Pieces pieces{.weights = cutter.cut(size_of(weight_layout_)),
                .bias = call_.bias ? cutter.cut(Bytes(4 * slices_.width)) : nullptr,
                .of_thread = {},
                .used = {}};
  for (int part = 0; part < batch_.parts; ++part) {
    pieces.of_thread.push_back({.from = cutter.cut(from_of(batch_.group).bytes()),
                                .to = cutter.cut(to_of(batch_.group).bytes()),
                                .scratchpad = cutter.cut(scratchpad_)});
  }
  pieces.used = cutter.used();
  return pieces;
}

Bytes HalfImages::workspace() const { return cut(nullptr).used; }

std::vector<GroupChains> HalfImages::bind_groups(const Pieces& pieces) const {
  std::vector<GroupChains> chains(pieces.of_thread.size());
  for (const std::int64_t images : batch_.group_sizes()) {
    const dnnl::primitive_desc_base description = describe(images, &weight_layout_);
    const dnnl::primitive primitive(description.get());
    for (std::size_t part = 0; part < chains.size(); ++part) {
      const Pieces::OfThread& piece = pieces.of_thread[part];
      std::vector<std::pair<int, dnnl::memory>> list{
          {call_.forward ? DNNL_ARG_SRC : DNNL_ARG_DIFF_DST, memory_at(descriptor(from_of(images)), piece.from)},
          {DNNL_ARG_WEIGHTS, memory_at(weight_layout_, pieces.weights)},
          {call_.forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_SRC, memory_at(descriptor(to_of(images)), piece.to)},
          {DNNL_ARG_SCRATCHPAD, memory_at(description.query_md(dnnl::query::scratchpad_md), piece.scratchpad)}};
      if (call_.bias) {
        list.emplace_back(DNNL_ARG_BIAS, memory_at(descriptor(as_floats(with_dim(*call_.bias, 0, slices_.width))), pieces.bias));
      }
      chains[part][images].add(primitive, list);
    }
  }
  return chains;
}

// What is kept does not grow with the images or the slices, so plans need not count it.
std::unique_ptr<BoundKernel> HalfImages::bind(const Operand& from, const Operand& to, const Operand* bias, std::byte* workspace,
                                              const BindWeights& bind_weights) const {
  const OmpThreads alone(1);
  const Pieces pieces = cut(workspace);
  return with_storage(to.type.dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([pieces, slices = slices_, batch = batch_, convolutions = bind_groups(pieces),
                       bring_weights = bind_weights(floats_of(pieces.weights)), source = elements<T>(from),
                       target = elements<T>(to), source_bias = bias == nullptr ? nullptr : elements<T>(*bias),
                       in = image_elements(from.type), out = image_elements(to.type)]() mutable {
      const auto widen = simd::element_loops<T>().widen;
      for (std::int64_t channel = 0; channel < slices.channels; channel += slices.width) {
        bring_weights(channel);
        if (source_bias != nullptr) widen(source_bias + channel, floats_of(pieces.bias), slices.width);
        batch.for_each_group([&](int part, std::int64_t first, std::int64_t images) {
          const Pieces::OfThread& piece = pieces.of_thread[static_cast<std::size_t>(part)];
          widen(source + first * in, floats_of(piece.from), images * in);
          convolutions[static_cast<std::size_t>(part)].at(images).run();
          narrow_rows(floats_of(piece.to), target + first * out + channel, slices.channels, slices.width,
                      images * out / slices.channels);
        });
      }
    });
  });
}

}  // namespace snug::backends::cpu
