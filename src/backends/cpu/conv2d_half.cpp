#include "backends/cpu/conv2d_half.h"

#include <algorithm>
#include <exception>
#include <map>

#include "backends/cpu/parallel.h"
#include "backends/cpu/simd.h"
#include "backends/cpu/simd_loops.h"
#include "backends/cpu/storage.h"

namespace snug::backends::cpu {

bool is_half(const Type& type) { return is_dense_real(type) && bits_per_element(type.dtype) == 16; }

// Measured on WRN-28-2's step of 100 images on two threads: 2 to 6% more processor time with little room, up to 9% with the
// least, which leaves the other threads idle.
KernelMatch accept_half(HalfRoom room, Bytes workspace, DType dtype, int threads) {
  const bool is_compared = dtype == DType::f16;  // bf16 has faster kernels, for which these are not variants
  switch (room) {
    case HalfRoom::fast:
      return Accept{.workspace = workspace, .numerics = "half"};
    case HalfRoom::small:
      return Accept{.workspace = workspace, .numerics = "half_small", .slowdown = is_compared ? 1.1 : 0};
    default:
      return Accept{.workspace = workspace, .numerics = "half_least", .slowdown = is_compared ? 1.1 * threads : 0};
  }
}

namespace {

constexpr std::int64_t kBlock = 16;                                   // channels in a block of the weights' layouts
constexpr std::int64_t kCachedFloats = (std::int64_t{1} << 19U) / 4;  // of images: half of a core's second-level cache, about

// A quarter of the channels, in whole blocks, or a single block; all where that does not come out even.
std::int64_t width_of(std::int64_t channels, HalfRoom room) {
  if (room == HalfRoom::fast || channels % kBlock != 0) return channels;
  const std::int64_t quarter = (channels / 4 + kBlock - 1) / kBlock * kBlock;
  const std::int64_t width = room == HalfRoom::least ? kBlock : quarter;
  return channels % width == 0 ? width : channels;
}

Type with_dim(Type type, std::size_t dim, std::int64_t size) {
  std::vector<std::int64_t> dims(type.shape.dims().begin(), type.shape.dims().end());
  if (type.layout.kind == Layout::Kind::opaque)
    type.layout.opaque_bytes = Bytes(type.layout.opaque_bytes.count() / dims[dim] * size);
  dims[dim] = size;
  type.shape = Shape(std::span<const std::int64_t>(dims));
  return type;
}

std::int64_t image_elements(const Type& type) { return type.elements() / type.shape[0]; }

// Whether a slice of output and input channels lies by itself in the gradient, as only a single block does, and less room for
// images is worth more calls.
HalfRoom room_for_inputs(const Type& x, const Type& dw, const ChannelSlices& outputs, HalfRoom room) {
  if (room != HalfRoom::least || outputs.width != kBlock || dw.layout.opaque_name != "ABcd16b16a") return HalfRoom::fast;
  return image_elements(x) > kBlock * image_elements(dw) ? HalfRoom::least : HalfRoom::fast;
}

// How many threads have images.
int parts_of(std::int64_t batch, HalfRoom room, int threads) {
  return room == HalfRoom::least ? 1 : static_cast<int>(std::min<std::int64_t>(batch, threads));
}

// As many images as a thread's cache holds, but those of all threads take no more than a quarter of the batch's own room.
// A weight's gradient that is larger than all images of a thread needs a second place where these come in several groups.
std::int64_t images_at_a_time(std::int64_t batch, int parts, std::int64_t floats_an_image, std::int64_t floats_of_gradient,
                              HalfRoom room) {
  if (room != HalfRoom::fast) return 1;
  const std::int64_t of_thread = (batch + parts - 1) / parts;
  if (of_thread * floats_an_image <= floats_of_gradient) return of_thread;
  return std::clamp<std::int64_t>(kCachedFloats / floats_an_image, 1,
                                  std::max<std::int64_t>(batch / (std::int64_t{8} * parts), 1));
}

// The sizes of groups that some thread's images come in.
std::vector<std::int64_t> group_sizes(std::int64_t batch, int parts, std::int64_t group) {
  std::vector<std::int64_t> sizes{group};
  for (int part = 0; part < parts; ++part) {
    const std::int64_t images = part_of(batch, part, parts).size();
    for (const std::int64_t size : {std::min(images, group), images % group}) {
      if (size > 0 && !std::ranges::count(sizes, size)) sizes.push_back(size);
    }
  }
  return sizes;
}

float* floats_of(std::byte* data) { return reinterpret_cast<float*>(data); }

// Channels of pixels, some next to each other: as floats that lie by themselves, and back; on the calling thread.
template <typename T>
void gather(const T* all, std::int64_t channels, std::int64_t width, float* alone, std::int64_t pixels) {
  const auto widen = simd::element_loops<T>().widen;
  if (width == channels) return widen(all, alone, pixels * channels);
  for (std::int64_t p = 0; p < pixels; ++p) widen(all + p * channels, alone + p * width, width);
}

template <typename T>
void scatter(const float* alone, std::int64_t width, T* all, std::int64_t channels, std::int64_t pixels) {
  const auto narrow = simd::element_loops<T>().narrow;
  if (width == channels) return narrow(alone, all, pixels * channels);
  for (std::int64_t p = 0; p < pixels; ++p) narrow(alone + p * width, all + p * channels, width);
}

using Chains = std::vector<std::unique_ptr<PrimitiveChain>>;

// Chains that run at the same time, one a thread. oneDNN's loops within stay on that thread.
std::unique_ptr<BoundKernel> side_by_side(Chains chains) {
  std::vector<std::exception_ptr> failures(chains.size());
  return make_bound([chains = std::move(chains), failures = std::move(failures)]() mutable {
    const int count = static_cast<int>(chains.size());
#pragma omp parallel for schedule(static, 1) num_threads(count)
    for (int i = 0; i < count; ++i) {
      const OmpThreads alone(1);
      try {
        chains[static_cast<std::size_t>(i)]->run();
      } catch (...) {
        failures[static_cast<std::size_t>(i)] = std::current_exception();  // none may leave a parallel loop
      }
    }
    for (const std::exception_ptr& failure : failures) {
      if (failure != nullptr) std::rethrow_exception(failure);
    }
  });
}

std::unique_ptr<BoundKernel> run_again(std::shared_ptr<BoundKernel> kernel) {
  return make_bound([kernel = std::move(kernel)] { kernel->run(); });
}

// A general matrix product would take its scratch, and longer than a copy of the weights.
bool is_direct(const dnnl::primitive_desc_base& description) {
  const char* name = nullptr;
  if (dnnl_primitive_desc_query(description.get(), dnnl_query_impl_info_str, 0, static_cast<void*>(&name)) != dnnl_success)
    return false;
  const std::string_view implementation(name);
  return implementation.starts_with("jit") || implementation.starts_with("brg");
}

}  // namespace

ChannelSlices::ChannelSlices(std::int64_t all, std::int64_t groups, HalfRoom room)
    : channels(all), width(groups != 1 ? all : width_of(all, room)) {}

// ---- forward and data gradient

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
      threads_(threads),
      parts_(parts_of(call_.from.shape[0], room, threads)),
      groups_(call_.attributes.integer("groups")),
      slices_(call_.to.shape[1], groups_, room),
      group_(images_at_a_time(call_.from.shape[0], parts_, image_elements(from_of(1)) + image_elements(to_of(1)), 0, room)) {
  const OmpThreads alone(1);
  weight_layout_ = describe(group_, nullptr).query_md(dnnl::query::weights_md);
  for (const std::int64_t images : group_sizes(call_.from.shape[0], parts_, group_))
    scratchpad_ = std::max(scratchpad_, size_of(describe(images, &weight_layout_).query_md(dnnl::query::scratchpad_md)));
}

Type HalfImages::from_of(std::int64_t images) const { return as_floats(with_dim(call_.from, 0, images)); }
Type HalfImages::to_of(std::int64_t images) const { return as_floats(with_dim(with_dim(call_.to, 0, images), 1, slices_.width)); }

// With the weights in a given layout; without one in the weight's own, where the forward pass reads it, or in oneDNN's choice.
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
    // Layouts for pairs of numbers of 16 bits are not for floats.
  }
  return conv.forward(conv.any_weight(), bias_layout);
}

HalfImages::Pieces HalfImages::cut(std::byte* workspace) const {
  WorkspaceCutter cutter(workspace);
  Pieces pieces{.weights = cutter.cut(size_of(weight_layout_)),
                .bias = call_.bias ? cutter.cut(Bytes(4 * slices_.width)) : nullptr,
                .of_thread = {},
                .used = {}};
  for (int part = 0; part < parts_; ++part) {
    pieces.of_thread.push_back({.from = cutter.cut(from_of(group_).bytes()),
                                .to = cutter.cut(to_of(group_).bytes()),
                                .scratchpad = cutter.cut(scratchpad_)});
  }
  pieces.used = cutter.used();
  return pieces;
}

Bytes HalfImages::workspace() const { return cut(nullptr).used; }

std::unique_ptr<BoundKernel> HalfImages::bind(const Operand& from, const Operand& to, const Operand* bias, std::byte* workspace,
                                              const BringWeights& bring_weights) const {
  const OmpThreads alone(1);
  const Pieces pieces = cut(workspace);
  const std::int64_t batch = from.type.shape[0];
  std::map<std::int64_t, std::pair<dnnl::primitive_desc_base, dnnl::primitive>> primitives;
  for (const std::int64_t images : group_sizes(batch, parts_, group_)) {
    const dnnl::primitive_desc_base description = describe(images, &weight_layout_);
    primitives.emplace(images, std::pair(description, dnnl::primitive(description.get())));
  }
  const auto bind_group = [&](std::int64_t images, const Pieces::OfThread& piece) {
    const auto& [description, primitive] = primitives.at(images);
    std::vector<std::pair<int, dnnl::memory>> list{
        {call_.forward ? DNNL_ARG_SRC : DNNL_ARG_DIFF_DST, memory_at(descriptor(from_of(images)), piece.from)},
        {DNNL_ARG_WEIGHTS, memory_at(weight_layout_, pieces.weights)},
        {call_.forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_SRC, memory_at(descriptor(to_of(images)), piece.to)},
        {DNNL_ARG_SCRATCHPAD, memory_at(description.query_md(dnnl::query::scratchpad_md), piece.scratchpad)}};
    if (call_.bias) {
      list.emplace_back(DNNL_ARG_BIAS, memory_at(descriptor(as_floats(with_dim(*call_.bias, 0, slices_.width))), pieces.bias));
    }
    auto chain = std::make_shared<PrimitiveChain>();
    chain->add(primitive, list);
    return chain;
  };
  const std::int64_t in = image_elements(from.type);
  const std::int64_t out = image_elements(to.type);
  const std::int64_t channels = slices_.channels;
  const std::int64_t width = slices_.width;
  const auto chain_of = [&]<typename T>(T /*tag*/, int part, std::int64_t channel) {
    const Pieces::OfThread& piece = pieces.of_thread[static_cast<std::size_t>(part)];
    std::map<std::int64_t, std::shared_ptr<BoundKernel>> bound;
    auto chain = std::make_unique<PrimitiveChain>();
    const Range range = part_of(batch, part, parts_);
    for (std::int64_t first = range.begin; first < range.end; first += group_) {
      const std::int64_t images = std::min(group_, range.end - first);
      chain->add_action(make_bound([=, source = elements<T>(from) + first * in, target = floats_of(piece.from)] {
        simd::element_loops<T>().widen(source, target, images * in);
      }));
      auto& convolution = bound[images];
      if (convolution == nullptr) convolution = bind_group(images, piece);
      chain->add_action(run_again(convolution));
      chain->add_action(make_bound([=, source = floats_of(piece.to), target = elements<T>(to) + first * out + channel] {
        scatter(source, width, target, channels, images * out / channels);
      }));
    }
    return chain;
  };
  auto whole = std::make_unique<PrimitiveChain>();
  for (std::int64_t channel = 0; channel < channels; channel += width) {
    whole->add_action(bring_weights(channel, floats_of(pieces.weights)));
    if (bias != nullptr) {
      whole->add_action(widen_elements(bias->type.dtype, bias->data + 2 * channel, floats_of(pieces.bias), width, threads_));
    }
    Chains chains;
    for (int part = 0; part < parts_; ++part) {
      chains.push_back(with_storage(to.type.dtype, [&]<typename T>(T tag) { return chain_of(tag, part, channel); }));
    }
    whole->add_action(side_by_side(std::move(chains)));
  }
  return whole;
}

// ---- weight gradient

struct HalfWeightGradient::Pieces {
  struct OfThread {
    std::byte *dy, *x, *total, *fresh, *scratchpad;
  };
  std::vector<OfThread> of_thread;
  Bytes used;
};

HalfWeightGradient::HalfWeightGradient(Type dy, Type x, Type dw, const Attributes& attributes, HalfRoom room, int threads)
    : dy_(std::move(dy)),
      x_(std::move(x)),
      dw_(std::move(dw)),
      attributes_(attributes),
      threads_(threads),
      parts_(parts_of(dy_.shape[0], room, threads)),
      groups_(attributes.integer("groups")),
      slices_(dw_.shape[0], groups_, room),
      input_slices_(x_.shape[1], groups_, room_for_inputs(x_, dw_, slices_, room)),
      group_(images_at_a_time(dy_.shape[0], parts_, image_elements(dy_of(1)) + image_elements(x_of(1)), dw_.elements(), room)) {
  const OmpThreads alone(1);
  gradient_layout_ = describe(group_, nullptr).diff_weights_desc();
  for (const std::int64_t images : group_sizes(dy_.shape[0], parts_, group_))
    scratchpad_ = std::max(scratchpad_, size_of(describe(images, &gradient_layout_).scratchpad_desc()));
}

Type HalfWeightGradient::dy_of(std::int64_t images) const {
  return as_floats(with_dim(with_dim(dy_, 0, images), 1, slices_.width));
}

Type HalfWeightGradient::x_of(std::int64_t images) const {
  return as_floats(with_dim(with_dim(x_, 0, images), 1, input_slices_.width));
}

// The gradient in a given layout; without one in the weight's own, where the library makes it, or in its choice.
dnnl::convolution_backward_weights::primitive_desc HalfWeightGradient::describe(std::int64_t images,
                                                                                const dnnl::memory::desc* gradient) const {
  Type dw = as_floats(slices_.is_whole() ? dw_ : with_dim(dw_, 0, slices_.width));
  if (!input_slices_.is_whole()) dw = with_dim(dw, 1, input_slices_.width);
  const Convolution conv(x_of(images), dw, dy_of(images), attributes_);
  if (gradient != nullptr) return conv.backward_weights(*gradient);
  try {
    auto own = conv.backward_weights(conv.wanted_weight);
    if (is_direct(own)) return own;
  } catch (const dnnl::error&) {
    // Layouts for pairs of numbers of 16 bits are not for floats.
  }
  return conv.backward_weights(conv.any_weight());
}

// Whether some thread has more than one group of images.
bool HalfWeightGradient::adds_up() const { return part_of(dy_.shape[0], parts_ - 1, parts_).size() > group_; }

HalfWeightGradient::Pieces HalfWeightGradient::cut(std::byte* workspace) const {
  WorkspaceCutter cutter(workspace);
  Pieces pieces;
  for (int part = 0; part < parts_; ++part) {
    pieces.of_thread.push_back({.dy = cutter.cut(dy_of(group_).bytes()),
                                .x = cutter.cut(x_of(group_).bytes()),
                                .total = cutter.cut(size_of(gradient_layout_)),
                                .fresh = adds_up() ? cutter.cut(size_of(gradient_layout_)) : nullptr,
                                .scratchpad = cutter.cut(scratchpad_)});
  }
  pieces.used = cutter.used();
  return pieces;
}

Bytes HalfWeightGradient::workspace() const { return cut(nullptr).used; }

std::unique_ptr<BoundKernel> HalfWeightGradient::bind(const Operand& dy, const Operand& x, std::byte* workspace,
                                                      const TakeGradient& take_gradient) const {
  const OmpThreads alone(1);
  const Pieces pieces = cut(workspace);
  const std::int64_t batch = dy.type.shape[0];
  std::map<std::int64_t, std::pair<dnnl::convolution_backward_weights::primitive_desc, dnnl::primitive>> primitives;
  for (const std::int64_t images : group_sizes(batch, parts_, group_)) {
    const auto description = describe(images, &gradient_layout_);
    primitives.emplace(images, std::pair(description, dnnl::convolution_backward_weights(description)));
  }
  const auto bind_group = [&](std::int64_t images, const Pieces::OfThread& piece, std::byte* gradient) {
    const auto& [description, primitive] = primitives.at(images);
    auto chain = std::make_unique<PrimitiveChain>();
    chain->add(primitive, {{DNNL_ARG_DIFF_DST, memory_at(descriptor(dy_of(images)), piece.dy)},
                           {DNNL_ARG_SRC, memory_at(descriptor(x_of(images)), piece.x)},
                           {DNNL_ARG_DIFF_WEIGHTS, memory_at(gradient_layout_, gradient)},
                           {DNNL_ARG_SCRATCHPAD, memory_at(description.scratchpad_desc(), piece.scratchpad)}});
    return chain;
  };
  const std::int64_t in = image_elements(x.type);
  const std::int64_t out = image_elements(dy.type);
  const std::int64_t channels = slices_.channels;
  const std::int64_t width = slices_.width;
  const std::int64_t in_channels = input_slices_.channels;
  const std::int64_t in_width = input_slices_.width;
  const std::int64_t floats_of_gradient = size_of(gradient_layout_).count() / 4;
  const auto chain_of = [&]<typename T>(T /*tag*/, int part, std::int64_t channel, std::int64_t in_channel) {
    const Pieces::OfThread& piece = pieces.of_thread[static_cast<std::size_t>(part)];
    std::map<std::int64_t, std::shared_ptr<BoundKernel>> bound;  // those behind the first
    auto chain = std::make_unique<PrimitiveChain>();
    const Range range = part_of(batch, part, parts_);
    for (std::int64_t first = range.begin; first < range.end; first += group_) {
      const std::int64_t images = std::min(group_, range.end - first);
      chain->add_action(make_bound([=, dy_from = elements<T>(dy) + first * out + channel, dy_to = floats_of(piece.dy),
                                    x_from = elements<T>(x) + first * in + in_channel, x_to = floats_of(piece.x)] {
        gather(dy_from, channels, width, dy_to, images * out / channels);
        gather(x_from, in_channels, in_width, x_to, images * in / in_channels);
      }));
      if (first == range.begin) {
        chain->add_action(bind_group(images, piece, piece.total));
        continue;
      }
      auto& convolution = bound[images];
      if (convolution == nullptr) convolution = bind_group(images, piece, piece.fresh);
      chain->add_action(run_again(convolution));
      chain->add_action(make_bound([=, total = floats_of(piece.total), fresh = floats_of(piece.fresh)] {
        simd::element_loops<float>().add(total, fresh, total, floats_of_gradient);
      }));
    }
    return chain;
  };
  auto whole = std::make_unique<PrimitiveChain>();
  std::byte* total = pieces.of_thread.front().total;
  const auto add_slice = [&](std::int64_t channel, std::int64_t in_channel) {
    Chains chains;
    for (int part = 0; part < parts_; ++part) {
      chains.push_back(with_storage(dy.type.dtype, [&]<typename T>(T tag) { return chain_of(tag, part, channel, in_channel); }));
    }
    whole->add_action(side_by_side(std::move(chains)));
    for (int part = 1; part < parts_; ++part) {
      const std::byte* of_thread = pieces.of_thread[static_cast<std::size_t>(part)].total;
      whole->add_action(add_elements(DType::f32, total, of_thread, total, floats_of_gradient, threads_));
    }
    whole->add_action(take_gradient(channel, in_channel, floats_of(total)));
  };
  for (std::int64_t channel = 0; channel < channels; channel += width) {
    for (std::int64_t in_channel = 0; in_channel < in_channels; in_channel += in_width) add_slice(channel, in_channel);
  }
  return whole;
}

}  // namespace snug::backends::cpu
