// A convolution's oneDNN descriptors, for the kernels of its three products.
#pragma once

#include <functional>
#include <vector>

#include <fmt/format.h>

#include "backends/cpu/onednn/onednn.h"
#include "ops/conv2d.h"

namespace snug::backends::cpu {

using ops::Conv2dGeometry;

struct Convolution {
  Conv2dGeometry geometry;
  dnnl::memory::desc input, weight, output;  // weight: in the value's layout
  dnnl::memory::desc wanted_weight;          // requested from the primitive: the value's own blocked layout, or any
  dnnl::memory::dims strides, dilations, padding;

  Convolution(const Type& x, const Type& w, const Type& y, const Attributes& attributes)
      : geometry(Conv2dGeometry::from(x.shape, w.shape, attributes)),
        input(descriptor(x)),
        weight(descriptor(w, geometry.groups)),
        output(descriptor(y)),
        wanted_weight(w.layout.kind == Layout::Kind::opaque
                          ? weight
                          : dnnl::memory::desc(weight.dims(), weight.data_type(), dnnl::memory::format_tag::any)),
        strides{geometry.stride_height, geometry.stride_width},
        dilations{geometry.dilation_height - 1, geometry.dilation_width - 1},  // oneDNN counts the gaps
        padding{geometry.padding_height, geometry.padding_width} {}

  // Rows that the last window does not reach are negative padding.
  dnnl::memory::dims rear_padding() const {
    const auto rear = [](std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride, std::int64_t front,
                         std::int64_t dilation) { return (out - 1) * stride + dilation * (kernel - 1) + 1 - in - front; };
    const Conv2dGeometry& g = geometry;
    return {rear(g.in_height, g.out_height, g.kernel_height, g.stride_height, g.padding_height, g.dilation_height),
            rear(g.in_width, g.out_width, g.kernel_width, g.stride_width, g.padding_width, g.dilation_width)};
  }

  dnnl::convolution_forward::primitive_desc forward(const dnnl::memory::desc& weights,
                                                    const dnnl::memory::desc* bias = nullptr) const {
    constexpr auto kKind = dnnl::prop_kind::forward_training;
    constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;
    if (bias != nullptr) {
      return {{kKind, kAlgorithm, input, weights, *bias, output, strides, dilations, padding, rear_padding()},
              booked_scratchpad(),
              engine()};
    }
    return {
        {kKind, kAlgorithm, input, weights, output, strides, dilations, padding, rear_padding()}, booked_scratchpad(), engine()};
  }

  // The descriptor of a weight's gradient: floats, rounded to 16 bits only when they are added to a sum.
  dnnl::memory::desc wanted_gradient() const {
    if (weight.data_type() == dnnl::memory::data_type::f32) return wanted_weight;
    return {weight.dims(), dnnl::memory::data_type::f32, dnnl::memory::format_tag::any};
  }
  dnnl::memory::desc any_weight() const { return {weight.dims(), weight.data_type(), dnnl::memory::format_tag::any}; }

  dnnl::convolution_backward_data::primitive_desc backward_data() const { return backward_data(any_weight()); }
  dnnl::convolution_backward_data::primitive_desc backward_data(const dnnl::memory::desc& weights) const {
    return {{dnnl::algorithm::convolution_direct, input, weights, output, strides, dilations, padding, rear_padding()},
            booked_scratchpad(),
            engine(),
            forward(any_weight())};
  }

  dnnl::convolution_backward_weights::primitive_desc backward_weights(const dnnl::memory::desc& weights) const {
    return {{dnnl::algorithm::convolution_direct, input, weights, output, strides, dilations, padding, rear_padding()},
            booked_scratchpad(),
            engine(),
            forward(any_weight())};
  }
};

// Converts oneDNN's exceptions, and values that it cannot take, to refusals.
template <typename Accepting>
KernelMatch accept_if_possible(const KernelQuery& query, const Accepting& accepting) {
  for (const auto& types : {query.inputs, query.outputs}) {
    for (const Type& type : types) {
      if (auto reason = objection(type)) return Refuse{*reason};
    }
  }
  try {
    const OmpThreads scope(query.threads);
    return accepting();
  } catch (const dnnl::error& error) {
    return Refuse{fmt::format("oneDNN: {}", error.message)};
  }
}

// Converts a weight's new gradient, floats in oneDNN's layout, to `out`, a 16-bit value in the layout of `type`; where `sum` is
// not null the rounded gradient is added to it. The placer is made once for many places, and allocates nothing when called.
using GradientPlacer = std::function<void(const std::byte* sum, std::byte* out)>;
GradientPlacer gradient_placer(const dnnl::memory::desc& fresh_layout, const float* fresh, const Type& type, std::int64_t groups,
                               int threads);
std::unique_ptr<BoundKernel> place_gradient(const dnnl::memory::desc& fresh_layout, const std::byte* fresh, const Type& type,
                                            std::int64_t groups, const std::byte* sum, std::byte* out, int threads);

inline std::vector<Type> types_of(std::span<const Operand> operands) {
  std::vector<Type> types;
  for (const Operand& operand : operands) types.push_back(operand.type);
  return types;
}

}  // namespace snug::backends::cpu
