// Convolutions of 16-bit numbers that the processor cannot compute with. Every thread has its own images: it widens a few at a
// time to floats, which stay in its cache, has oneDNN convolve them on that thread alone, and rounds the result. So the threads
// synchronize once per call, and what is read and written in memory has 16 bits.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "backends/cpu/half/batch.h"
#include "backends/cpu/onednn/convolution.h"

namespace snug::backends::cpu {

constexpr std::int64_t kWeightBlock = 16;  // channels in a block of the weights' layouts

// The accepted match of a kernel with that much workspace. Its slowdown is known only relative to its own fast variant.
KernelMatch accept_half(HalfRoom room, Bytes workspace, bool is_reference, DType dtype, int threads);

// The channels of some weights, one slice after the other.
struct ChannelSlices {
  std::int64_t channels, width;

  ChannelSlices(std::int64_t all, std::int64_t groups, HalfRoom room);
  bool is_whole() const { return width == channels; }
};

// A forward convolution, images x to y, or a data gradient, dy to dx, in slices of the result's channels.
class HalfImages {
 public:
  struct Call {
    bool forward;
    Type from, weight, to;  // the weight's type gives its shape, and a layout to use where the library can
    std::optional<Type> bias;
    Attributes attributes;
  };

  // dnnl::error when oneDNN has no such convolution.
  HalfImages(Call call, HalfRoom room, int threads);

  Bytes workspace() const;
  bool is_reference() const { return is_reference_; }  // oneDNN's convolution is
  std::int64_t groups() const { return groups_; }
  // The layout of a slice's weights, as floats.
  const dnnl::memory::desc& weight_layout() const { return weight_layout_; }

  // Called while the kernel runs: writes the weights of the channels from `first` on to the `target` that it was bound to.
  using BringWeights = std::function<void(std::int64_t first)>;
  using BindWeights = std::function<BringWeights(float* target)>;
  std::unique_ptr<BoundKernel> bind(const Operand& from, const Operand& to, const Operand* bias, std::byte* workspace,
                                    const BindWeights& bind_weights) const;

 private:
  struct Pieces;
  dnnl::primitive_desc_base describe(std::int64_t images, const dnnl::memory::desc* weights) const;
  Type from_of(std::int64_t images) const;
  Type to_of(std::int64_t images) const;
  Pieces cut(std::byte* workspace) const;
  std::vector<GroupChains> bind_groups(const Pieces& pieces) const;

  Call call_;
  std::int64_t groups_;
  ChannelSlices slices_;
  HalfBatch batch_;
  dnnl::memory::desc weight_layout_;
  Bytes scratchpad_;
  bool is_reference_ = false;
};

// A weight gradient, from dy and x, in slices of output channels, and with HalfRoom::least also of input channels where the
// images take most of the workspace. Every thread adds up the gradients of its own images.
class HalfWeightGradient {
 public:
  // dnnl::error when oneDNN has no such convolution.
  HalfWeightGradient(Type dy, Type x, Type dw, const Attributes& attributes, HalfRoom room, int threads);

  Bytes workspace() const;
  bool is_reference() const { return is_reference_; }  // oneDNN's convolution is
  const ChannelSlices& slices() const { return slices_; }
  const ChannelSlices& input_slices() const { return input_slices_; }
  std::int64_t groups() const { return groups_; }
  // The layout of a slice's gradient, as floats.
  const dnnl::memory::desc& gradient_layout() const { return gradient_layout_; }

  // Called while the kernel runs: consumes the gradient of the output channels from `first_out` on and the input channels from
  // `first_in` on from where it was bound to.
  using TakeGradient = std::function<void(std::int64_t first_out, std::int64_t first_in)>;
  using BindGradient = std::function<TakeGradient(const float* gradient)>;
  std::unique_ptr<BoundKernel> bind(const Operand& dy, const Operand& x, std::byte* workspace,
                                    const BindGradient& bind_gradient) const;

 private:
  struct Pieces;
  struct Convolutions;
  dnnl::convolution_backward_weights::primitive_desc describe(std::int64_t images, const dnnl::memory::desc* gradient) const;
  Type dy_of(std::int64_t images) const;
  Type x_of(std::int64_t images) const;
  bool adds_up() const;
  Pieces cut(std::byte* workspace) const;
  std::vector<Convolutions> bind_groups(const Pieces& pieces) const;

  Type dy_, x_, dw_;
  Attributes attributes_;
  int threads_;
  std::int64_t groups_;
  ChannelSlices slices_, input_slices_;
  HalfBatch batch_;
  dnnl::memory::desc gradient_layout_;
  Bytes scratchpad_;
  bool is_reference_ = false;
};

// The weights [first, first + the layout's) of dimension `dim`, as floats in that layout. A slice is whole blocks.
HalfImages::BringWeights widen_weights(const Operand& weight, std::int64_t groups, std::size_t dim,
                                       const dnnl::memory::desc& layout, float* target, int threads);

}  // namespace snug::backends::cpu
