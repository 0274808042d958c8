#include "backends/reference/call.h"
#include "backends/reference/kernels.h"
#include "backends/reference/windows.h"
#include "ops/pool.h"

namespace snug::backends::reference {

namespace {

using ops::PoolGeometry;

// The padding counts as zeros, so every window is divided by its full size.
double window_size(const PoolGeometry& g) { return static_cast<double>(g.kernel_height * g.kernel_width); }

template <typename T>
void run_avg_pool(const Call& call) {
  const View<const T> x = call.input<T>(0);
  const View<T> y = call.output<T>(0);
  const auto g = PoolGeometry::from(call.input_shape(0), call.attributes);
#pragma omp parallel for collapse(2) num_threads(call.threads)
  for (std::int64_t n = 0; n < g.batch; ++n) {
    for (std::int64_t oh = 0; oh < g.out_height; ++oh) {
      const Range rows = rows_of_window(g, oh);
      for (std::int64_t ow = 0; ow < g.out_width; ++ow) {
        const Range columns = columns_of_window(g, ow);
        for (std::int64_t c = 0; c < g.channels; ++c) {
          double sum = 0;
          for (std::int64_t ih = rows.begin; ih < rows.end; ++ih) {
            for (std::int64_t iw = columns.begin; iw < columns.end; ++iw) sum += x(n, c, ih, iw);
          }
          y(n, c, oh, ow) = static_cast<T>(sum / window_size(g));
        }
      }
    }
  }
}

template <typename T>
void run_grad(const Call& call) {
  const View<const T> dy = call.input<T>(0);
  const Result<T> dx = call.result<T>();
  const auto g = PoolGeometry::from(call.output_shape(0), call.attributes);
#pragma omp parallel for collapse(2) num_threads(call.threads)
  for (std::int64_t n = 0; n < g.batch; ++n) {
    for (std::int64_t ih = 0; ih < g.in_height; ++ih) {
      const Range rows = windows_over_row(g, ih);
      for (std::int64_t iw = 0; iw < g.in_width; ++iw) {
        const Range columns = windows_over_column(g, iw);
        for (std::int64_t c = 0; c < g.channels; ++c) {
          double sum = 0;
          for (std::int64_t oh = rows.begin; oh < rows.end; ++oh) {
            for (std::int64_t ow = columns.begin; ow < columns.end; ++ow) sum += dy(n, c, oh, ow);
          }
          dx.set(dx.offset(n, c, ih, iw), sum / window_size(g));
        }
      }
    }
  }
}

}  // namespace

constinit const KernelDef avg_pool = define<[]<typename T>() { return run_avg_pool<T>; }>("reference_avg_pool");
constinit const KernelDef avg_pool_grad = define<[]<typename T>() { return run_grad<T>; }>("reference_avg_pool_grad");

}  // namespace snug::backends::reference
