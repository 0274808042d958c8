#include <cmath>

#include "backends/reference/call.h"
#include "backends/reference/kernels.h"
#include "backends/reference/windows.h"
#include "ops/pool.h"

namespace snug::backends::reference {

namespace {

using ops::PoolGeometry;

template <typename T>
struct Winner {
  std::int64_t ih, iw;
  T value;
};

// The largest element of a window, the first of equals. A NaN is larger than any number, as in PyTorch. No window lies entirely
// in the padding.
template <typename T>
Winner<T> winner_of(const PoolGeometry& g, const View<const T>& x, std::int64_t n, std::int64_t c, std::int64_t oh,
                    std::int64_t ow) {
  const Range rows = rows_of_window(g, oh);
  const Range columns = columns_of_window(g, ow);
  Winner<T> winner{.ih = rows.begin, .iw = columns.begin, .value = x(n, c, rows.begin, columns.begin)};
  for (std::int64_t ih = rows.begin; ih < rows.end; ++ih) {
    for (std::int64_t iw = columns.begin; iw < columns.end; ++iw) {
      const T value = x(n, c, ih, iw);
      if (value > winner.value || (std::isnan(value) && !std::isnan(winner.value))) winner = {.ih = ih, .iw = iw, .value = value};
    }
  }
  return winner;
}

// The index of an input pixel in a window, row by row, counting places in the padding.
std::int64_t number_in_window(const PoolGeometry& g, std::int64_t oh, std::int64_t ow, std::int64_t ih, std::int64_t iw) {
  const std::int64_t kh = ih - (oh * g.stride_height - g.padding_height);
  const std::int64_t kw = iw - (ow * g.stride_width - g.padding_width);
  return kh * g.kernel_width + kw;
}

template <typename T>
void run_max_pool(const Call& call) {
  const View<const T> x = call.input<T>(0);
  const View<T> y = call.output<T>(0);
  const auto g = PoolGeometry::from(call.input_shape(0), call.attributes);
#pragma omp parallel for collapse(2) num_threads(call.threads)
  for (std::int64_t n = 0; n < g.batch; ++n) {
    for (std::int64_t oh = 0; oh < g.out_height; ++oh) {
      for (std::int64_t ow = 0; ow < g.out_width; ++ow) {
        for (std::int64_t c = 0; c < g.channels; ++c) y(n, c, oh, ow) = winner_of(g, x, n, c, oh, ow).value;
      }
    }
  }
}

// A thread writes whole bytes: one 8-bit number, or two of 4 bits.
template <typename T>
void run_argmax(const Call& call) {
  const View<const T> x = call.input<T>(0);
  const Operand& argmax = call.outputs[0];
  auto* bytes = reinterpret_cast<std::uint8_t*>(argmax.data);
  const auto g = PoolGeometry::from(call.input_shape(0), call.attributes);
  const std::int64_t elements = argmax.type.elements();
  const PositionMap to_logical = PositionMap::to_row_major(argmax.type);
  const auto number_at = [&](std::int64_t position) -> std::int64_t {
    if (position >= elements) return 0;
    const std::int64_t i = to_logical(position);
    const std::int64_t image = i / (g.out_height * g.out_width);
    const std::int64_t oh = i / g.out_width % g.out_height;
    const std::int64_t ow = i % g.out_width;
    const Winner<T> winner = winner_of(g, x, image / g.channels, image % g.channels, oh, ow);
    return number_in_window(g, oh, ow, winner.ih, winner.iw);
  };
  if (argmax.type.dtype == DType::u8) {
    parallel_for(call, elements, [&](std::int64_t i) { bytes[i] = static_cast<std::uint8_t>(number_at(i)); });
  } else {
    parallel_for(call, (elements + 1) / 2,
                 [&](std::int64_t i) { bytes[i] = static_cast<std::uint8_t>(number_at(2 * i) + 16 * number_at(2 * i + 1)); });
  }
}

// dx of a pixel is the sum of dy over the windows whose largest element it is: won(n, c, oh, ow, ih, iw).
template <typename T, typename Won>
void sum_over_won_windows(const Call& call, const PoolGeometry& g, const Won& won) {
  const View<const T> dy = call.input<T>(0);
  const Result<T> dx = call.result<T>();
#pragma omp parallel for collapse(2) num_threads(call.threads)
  for (std::int64_t n = 0; n < g.batch; ++n) {
    for (std::int64_t ih = 0; ih < g.in_height; ++ih) {
      const Range rows = windows_over_row(g, ih);
      for (std::int64_t iw = 0; iw < g.in_width; ++iw) {
        const Range columns = windows_over_column(g, iw);
        for (std::int64_t c = 0; c < g.channels; ++c) {
          double sum = 0;
          for (std::int64_t oh = rows.begin; oh < rows.end; ++oh) {
            for (std::int64_t ow = columns.begin; ow < columns.end; ++ow) {
              if (won(n, c, oh, ow, ih, iw)) sum += dy(n, c, oh, ow);
            }
          }
          dx.set(dx.offset(n, c, ih, iw), sum);
        }
      }
    }
  }
}

template <typename T>
void run_grad(const Call& call) {
  const View<const T> x = call.input<T>(1);
  const auto g = PoolGeometry::from(call.input_shape(1), call.attributes);
  sum_over_won_windows<T>(call, g, [&](auto n, auto c, auto oh, auto ow, auto ih, auto iw) {
    const Winner<T> winner = winner_of(g, x, n, c, oh, ow);
    return winner.ih == ih && winner.iw == iw;
  });
}

template <typename T>
void run_grad_argmax(const Call& call) {
  const View<const std::uint8_t> argmax = call.input<std::uint8_t>(1);  // strides count elements, whatever their size
  const bool nibbles = call.inputs[1].type.dtype == DType::u4;
  const auto g = PoolGeometry::from(call.output_shape(0), call.attributes);
  sum_over_won_windows<T>(call, g, [&](auto n, auto c, auto oh, auto ow, auto ih, auto iw) {
    const std::int64_t position = argmax.offset(n, c, oh, ow);
    const std::int64_t number = nibbles ? nibble_at(argmax.data, position) : argmax.data[position];
    return number == number_in_window(g, oh, ow, ih, iw);
  });
}

constexpr Signature kToArgmax{.outputs = {Element::argmax}};
constexpr Signature kFromArgmax{.inputs = {Element::real, Element::argmax}};

}  // namespace

constinit const KernelDef max_pool = define<[]<typename T>() { return run_max_pool<T>; }>("reference_max_pool");
constinit const KernelDef max_pool_grad = define<[]<typename T>() { return run_grad<T>; }>("reference_max_pool_grad");
constinit const KernelDef max_pool_argmax =
    define<[]<typename T>() { return run_argmax<T>; }, kToArgmax>("reference_max_pool_argmax");
constinit const KernelDef max_pool_grad_argmax =
    define<[]<typename T>() { return run_grad_argmax<T>; }, kFromArgmax>("reference_max_pool_grad_argmax");

}  // namespace snug::backends::reference
