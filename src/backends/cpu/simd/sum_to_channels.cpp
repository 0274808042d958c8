#include <algorithm>

#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/simd/loops.h"

// Sums over rows of channels, the gradient of a bias: each thread adds up its own rows in double, and the threads' sums are added
// in order.

namespace snug::backends::cpu {

namespace {

std::int64_t rows_of(const Type& x) { return x.elements() / x.shape[1]; }

// A bias of a few rows, or batch norm's sums over one group, are not worth another thread.
int parts_of(const Type& x, int threads) { return x.elements() < 4096 ? 1 : threads; }

// Each thread writes its sums to separate cache lines.
std::int64_t stride_of(std::int64_t channels) { return (channels + 7) / 8 * 8; }

KernelMatch match_sum(const KernelQuery& query) {
  const Type& x = query.inputs[0];
  if (!is_stored(x.dtype)) return Refuse{to_string(x) + " is not f32, bf16 or f16"};
  if (query.outputs[0].dtype != x.dtype) return Refuse{to_string(query.outputs[0]) + " has another element type"};
  const bool rows_of_channels =
      x.layout.kind == Layout::Kind::channels_last || (x.layout.kind == Layout::Kind::row_major && x.shape.rank() == 2);
  if (!rows_of_channels) return Refuse{to_string(x) + " does not lie channels last"};
  return Accept{.workspace = Bytes(8 * stride_of(x.shape[1]) * parts_of(x, query.threads))};
}

std::unique_ptr<BoundKernel> bind_sum(const KernelArguments& arguments) {
  const Type& type = arguments.inputs[0].type;
  return with_storage(type.dtype, [&]<typename T>(T /*tag*/) {
    const T* addend = accumulates(arguments.attributes) ? elements<T>(arguments.inputs[1]) : nullptr;
    return make_bound([x = elements<T>(arguments.inputs[0]), addend, y = elements<T>(arguments.outputs[0]), rows = rows_of(type),
                       channels = type.shape[1], parts = parts_of(type, arguments.threads),
                       sums = reinterpret_cast<double*>(arguments.workspace.data())] {
      for_each_part(rows, parts, 1, [&](int part, Range range) {
        double* sum = sums + part * stride_of(channels);
        std::fill_n(sum, channels, 0.0);
        simd::row_loops<T>().column_sums(x + range.begin * channels, range.size(), channels, sum);
      });
      for (std::int64_t c = 0; c < channels; ++c) {
        for (int part = 1; part < parts; ++part) sums[c] += sums[part * stride_of(channels) + c];
        const T sum = stored<T>(sums[c]);
        y[c] = addend == nullptr ? sum : stored<T>(to_float(addend[c]) + to_float(sum));
      }
    });
  });
}

}  // namespace

constinit const KernelDef simd_sum_to_channels{
    .name = "simd_sum_to_channels", .op = "sum_to_channels", .match = match_sum, .bind = bind_sum};

}  // namespace snug::backends::cpu
