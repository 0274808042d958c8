#include "ops/conv2d.h"

#include <algorithm>

#include "backends/reference/call.h"
#include "backends/reference/kernels.h"
#include "backends/sparse_store.h"

// Nonzero by nonzero, straight from the packed rows.

namespace snug::backends::reference {

namespace {

using ops::Conv2dGeometry;
using ops::SparseSlot;

// The output rows (or columns) whose tap reads within the input.
struct Reach {
  std::int64_t begin, end;
};

Reach reach_of(std::int64_t tap, std::int64_t stride, std::int64_t padding, std::int64_t dilation, std::int64_t in,
               std::int64_t out) {
  const std::int64_t shift = tap * dilation - padding;
  const std::int64_t begin = std::min(shift >= 0 ? 0 : (-shift + stride - 1) / stride, out);
  const std::int64_t end = in - shift <= 0 ? 0 : (in - shift - 1) / stride + 1;
  return {.begin = begin, .end = std::clamp(end, begin, out)};
}

// A convolution and one tensor of the store.
struct Problem {
  Conv2dGeometry g;
  SparseSlot slot;

  Problem(const Shape& input, const Attributes& attributes)
      : g(Conv2dGeometry::from(input, SparseSlot::from(attributes).shape, attributes)), slot(SparseSlot::from(attributes)) {}

  // Where a column's tap meets the input: body(channel, output row, input row, output columns, shift of the input's columns).
  template <typename Body>
  void for_rows(std::int64_t column, const Body& body) const {
    const std::int64_t channel = column % g.in_channels;
    const std::int64_t tap = column / g.in_channels;
    const std::int64_t kh = tap / g.kernel_width;
    const std::int64_t kw = tap % g.kernel_width;
    const Reach down = reach_of(kh, g.stride_height, g.padding_height, g.dilation_height, g.in_height, g.out_height);
    const Reach across = reach_of(kw, g.stride_width, g.padding_width, g.dilation_width, g.in_width, g.out_width);
    for (std::int64_t oh = down.begin; oh < down.end; ++oh) {
      body(channel, oh, oh * g.stride_height + kh * g.dilation_height - g.padding_height, across,
           kw * g.dilation_width - g.padding_width);
    }
  }
};

template <typename T>
SparseRows<const T> rows_of(const Call& call, const SparseSlot& slot, std::size_t values, std::size_t columns) {
  return {.values = reinterpret_cast<const T*>(call.inputs[values].data),
          .columns = reinterpret_cast<const std::uint8_t*>(call.inputs[columns].data),
          .rows = reinterpret_cast<const std::int32_t*>(call.inputs[columns + 1].data) + slot.first_row,
          .bits = slot.bits};
}

template <typename T>
void run_forward(const Call& call) {
  const Problem p(call.input_shape(0), call.attributes);
  const auto x = call.input<T>(0);
  const auto rows = rows_of<T>(call, p.slot, 1, 2);
  const View<T> y = call.output<T>(0);
  const bool has_bias = call.inputs.size() == 5;
  parallel_for(call, p.g.batch * p.g.out_channels, [&](std::int64_t i) {
    const std::int64_t n = i / p.g.out_channels;
    const std::int64_t o = i % p.g.out_channels;
    const T bias = has_bias ? reinterpret_cast<const T*>(call.inputs[4].data)[o] : T{};
    for (std::int64_t h = 0; h < p.g.out_height; ++h) {
      for (std::int64_t w = 0; w < p.g.out_width; ++w) y(n, o, h, w) = bias;
    }
    for (std::int64_t k = rows.begin(o); k < rows.end(o); ++k) {
      const T weight = rows.values[k];
      p.for_rows(rows.column(k), [&](std::int64_t c, std::int64_t oh, std::int64_t ih, Reach across, std::int64_t shift) {
        for (std::int64_t ow = across.begin; ow < across.end; ++ow)
          y(n, o, oh, ow) += weight * x(n, c, ih, ow * p.g.stride_width + shift);
      });
    }
  });
}

template <typename T>
void run_grad_input(const Call& call) {
  const Problem p(call.output_shape(0), call.attributes);
  const auto dy = call.input<T>(0);
  const auto rows = rows_of<T>(call, p.slot, 1, 2);
  const View<T> dx = call.output<T>(0);
  parallel_for(call, p.g.batch, [&](std::int64_t n) {
    for (std::int64_t c = 0; c < p.g.in_channels; ++c) {
      for (std::int64_t h = 0; h < p.g.in_height; ++h) {
        for (std::int64_t w = 0; w < p.g.in_width; ++w) dx(n, c, h, w) = T{};
      }
    }
    for (std::int64_t o = 0; o < p.g.out_channels; ++o) {
      for (std::int64_t k = rows.begin(o); k < rows.end(o); ++k) {
        const T weight = rows.values[k];
        p.for_rows(rows.column(k), [&](std::int64_t c, std::int64_t oh, std::int64_t ih, Reach across, std::int64_t shift) {
          for (std::int64_t ow = across.begin; ow < across.end; ++ow)
            dx(n, c, ih, ow * p.g.stride_width + shift) += weight * dy(n, o, oh, ow);
        });
      }
    }
  });
}

template <typename T>
void run_grad_weight(const Call& call) {
  const Problem p(call.input_shape(1), call.attributes);
  const auto dy = call.input<T>(0);
  const auto x = call.input<T>(1);
  const auto rows = rows_of<T>(call, p.slot, 0, 2);  // no values: the pattern alone
  auto* out = reinterpret_cast<T*>(call.outputs[0].data);
  const auto* sum = accumulates(call.attributes) ? reinterpret_cast<const T*>(call.inputs[4].data) : nullptr;
  const std::int64_t nonzeros = call.outputs[0].type.elements();
  if (sum == nullptr) {
    std::fill_n(out, nonzeros, T{});
  } else if (sum != out) {
    std::copy_n(sum, nonzeros, out);
  }
  parallel_for(call, p.g.out_channels, [&](std::int64_t o) {
    for (std::int64_t k = rows.begin(o); k < rows.end(o); ++k) {
      double total = 0;
      p.for_rows(rows.column(k), [&](std::int64_t c, std::int64_t oh, std::int64_t ih, Reach across, std::int64_t shift) {
        for (std::int64_t n = 0; n < p.g.batch; ++n) {
          for (std::int64_t ow = across.begin; ow < across.end; ++ow)
            total += static_cast<double>(dy(n, o, oh, ow)) * x(n, c, ih, ow * p.g.stride_width + shift);
        }
      });
      out[k] += static_cast<T>(total);
    }
  });
}

constexpr Signature kForward{.inputs = {Element::real, Element::real, Element::packed, Element::index, Element::real}};

}  // namespace

constinit const KernelDef sparse_conv2d =
    define<[]<typename T>() { return run_forward<T>; }, kForward>("reference_sparse_conv2d");
constinit const KernelDef sparse_conv2d_grad_input =
    define<[]<typename T>() { return run_grad_input<T>; }, kForward>("reference_sparse_conv2d_grad_input");
constinit const KernelDef sparse_conv2d_grad_weight =
    define<[]<typename T>() { return run_grad_weight<T>; }, kForward>("reference_sparse_conv2d_grad_weight");

}  // namespace snug::backends::reference
