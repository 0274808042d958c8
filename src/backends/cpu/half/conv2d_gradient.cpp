#include "backends/cpu/half/conv2d.h"
#include "backends/cpu/half/rows.h"
#include "backends/cpu/storage.h"

namespace snug::backends::cpu {

namespace {

// Slices input channels too where a slice of output and input channels is contiguous in the gradient, as only a single block is,
// and less workspace for images is worth more calls.
HalfRoom room_for_inputs(const Type& x, const Type& dw, const ChannelSlices& outputs, HalfRoom room) {
  if (room != HalfRoom::least || outputs.width != kWeightBlock || dw.layout.opaque_name != "ABcd16b16a") return HalfRoom::fast;
  return image_elements(x) > kWeightBlock * image_elements(dw) ? HalfRoom::least : HalfRoom::fast;
}

}  // namespace

struct HalfWeightGradient::Pieces {
  struct OfThread {
    std::byte *dy, *x, *total, *fresh, *scratchpad;
  };
  std::vector<OfThread> of_thread;
  Bytes used;
};

struct HalfWeightGradient::Convolutions {
  GroupChains to_total, to_fresh;
};

HalfWeightGradient::HalfWeightGradient(Type dy, Type x, Type dw, const Attributes& attributes, HalfRoom room, int threads)
    : dy_(std::move(dy)),
      x_(std::move(x)),
      dw_(std::move(dw)),
      attributes_(attributes),
      threads_(threads),
      groups_(attributes.integer("groups")),
      slices_(dw_.shape[0], groups_, room),
      input_slices_(x_.shape[1], groups_, room_for_inputs(x_, dw_, slices_, room)),
      batch_(dy_.shape[0], room, threads, image_elements(dy_of(1)) + image_elements(x_of(1)), dw_.elements()) {
  const OmpThreads alone(1);
  gradient_layout_ = describe(batch_.group, nullptr).diff_weights_desc();
  for (const std::int64_t images : batch_.group_sizes()) {
    const auto description = describe(images, &gradient_layout_);
    scratchpad_ = std::max(scratchpad_, size_of(description.scratchpad_desc()));
    is_reference_ = is_reference_ || cpu::is_reference(description);
  }
}

Type HalfWeightGradient::dy_of(std::int64_t images) const {
  return as_floats(with_dim(with_dim(dy_, 0, images), 1, slices_.width));
}

Type HalfWeightGradient::x_of(std::int64_t images) const {
  return as_floats(with_dim(with_dim(x_, 0, images), 1, input_slices_.width));
}

// The gradient in a given layout; by default in the weight's own, where the library makes it, or in its choice.
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
    // Layouts for pairs of 16-bit numbers are not for floats.
  }
  return conv.backward_weights(conv.any_weight());
}

// Whether some thread has more than one group of images.
bool HalfWeightGradient::adds_up() const { return batch_.of_part(batch_.parts - 1).size() > batch_.group; }

HalfWeightGradient::Pieces HalfWeightGradient::cut(std::byte* workspace) const {
  WorkspaceCutter cutter(workspace);
  Pieces pieces;
  for (int part = 0; part < batch_.parts; ++part) {
    pieces.of_thread.push_back({.dy = cutter.cut(dy_of(batch_.group).bytes()),
                                .x = cutter.cut(x_of(batch_.group).bytes()),
                                .total = cutter.cut(size_of(gradient_layout_)),
                                .fresh = adds_up() ? cutter.cut(size_of(gradient_layout_)) : nullptr,
                                .scratchpad = cutter.cut(scratchpad_)});
  }
  pieces.used = cutter.used();
  return pieces;
}

Bytes HalfWeightGradient::workspace() const { return cut(nullptr).used; }

// The first group of a thread makes the total, to which the later ones are added.
std::vector<HalfWeightGradient::Convolutions> HalfWeightGradient::bind_groups(const Pieces& pieces) const {
  std::map<std::int64_t, std::pair<dnnl::convolution_backward_weights::primitive_desc, dnnl::primitive>> primitives;
  for (const std::int64_t images : batch_.group_sizes()) {
    const auto description = describe(images, &gradient_layout_);
    primitives.emplace(images, std::pair(description, dnnl::convolution_backward_weights(description)));
  }
  std::vector<Convolutions> bound(pieces.of_thread.size());
  for (int part = 0; part < batch_.parts; ++part) {
    const auto at = static_cast<std::size_t>(part);
    const Pieces::OfThread& piece = pieces.of_thread[at];
    batch_.for_each_group_of(part, [&](std::int64_t first, std::int64_t images) {
      const bool is_first = first == batch_.of_part(part).begin;
      GroupChains& chains = is_first ? bound[at].to_total : bound[at].to_fresh;
      const auto [chain, is_new] = chains.try_emplace(images);
      if (!is_new) return;
      const auto& [description, primitive] = primitives.at(images);
      chain->second.add(primitive, {{DNNL_ARG_DIFF_DST, memory_at(descriptor(dy_of(images)), piece.dy)},
                                    {DNNL_ARG_SRC, memory_at(descriptor(x_of(images)), piece.x)},
                                    {DNNL_ARG_DIFF_WEIGHTS, memory_at(gradient_layout_, is_first ? piece.total : piece.fresh)},
                                    {DNNL_ARG_SCRATCHPAD, memory_at(description.scratchpad_desc(), piece.scratchpad)}});
    });
  }
  return bound;
}

// What is kept does not grow with the images or the slices, so plans need not count it.
std::unique_ptr<BoundKernel> HalfWeightGradient::bind(const Operand& dy, const Operand& x, std::byte* workspace,
                                                      const BindGradient& bind_gradient) const {
  const OmpThreads alone(1);
  const Pieces pieces = cut(workspace);
  float* total = floats_of(pieces.of_thread.front().total);
  return with_storage(dy.type.dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([pieces, total, slices = slices_, input_slices = input_slices_, batch = batch_, threads = threads_,
                       convolutions = bind_groups(pieces), take_gradient = bind_gradient(total), dy_from = elements<T>(dy),
                       x_from = elements<T>(x), in = image_elements(x.type), out = image_elements(dy.type),
                       count = size_of(gradient_layout_).count() / 4]() mutable {
      const auto add = simd::element_loops<float>().add;
      const auto make_slice = [&](std::int64_t channel, std::int64_t in_channel) {
        batch.for_each_group([&](int part, std::int64_t first, std::int64_t images) {
          const auto at = static_cast<std::size_t>(part);
          const Pieces::OfThread& piece = pieces.of_thread[at];
          widen_rows(dy_from + first * out + channel, slices.channels, floats_of(piece.dy), slices.width,
                     images * out / slices.channels);
          widen_rows(x_from + first * in + in_channel, input_slices.channels, floats_of(piece.x), input_slices.width,
                     images * in / input_slices.channels);
          if (first == batch.of_part(part).begin) return convolutions[at].to_total.at(images).run();
          convolutions[at].to_fresh.at(images).run();
          add(floats_of(piece.total), floats_of(piece.fresh), floats_of(piece.total), count);
        });
        for (std::size_t part = 1; part < pieces.of_thread.size(); ++part) {
          const float* of_thread = floats_of(pieces.of_thread[part].total);
          run_on_parts(count, threads, [&](std::int64_t first, std::int64_t size) {
            add(total + first, of_thread + first, total + first, size);
          });
        }
        take_gradient(channel, in_channel);
      };
      for (std::int64_t channel = 0; channel < slices.channels; channel += slices.width) {
        for (std::int64_t in_channel = 0; in_channel < input_slices.channels; in_channel += input_slices.width)
          make_slice(channel, in_channel);
      }
    });
  });
}

}  // namespace snug::backends::cpu
