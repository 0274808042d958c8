#include <algorithm>

#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/simd/loops.h"

// Means over whole images of 16-bit numbers, which oneDNN does not pool: sums in double, and a gradient that is the same for
// every pixel.

namespace snug::backends::cpu {

namespace {

KernelMatch match_image(const Type& image, Bytes workspace) {
  if (!is_16_bits(image)) return Refuse{to_string(image) + " is not bf16 or f16"};
  if (image.layout.kind != Layout::Kind::channels_last) return Refuse{to_string(image) + " is not channels last"};
  return Accept{.workspace = workspace};
}

// Each thread writes its sums to separate cache lines.
std::int64_t stride_of(const Type& image) { return (image.shape[1] + 7) / 8 * 8; }

KernelMatch match_pool(const KernelQuery& query) {
  const Type& x = query.inputs[0];
  return match_image(x, Bytes(8 * stride_of(x) * query.threads));
}

KernelMatch match_grad(const KernelQuery& query) {
  if (accumulates(query.attributes)) return Refuse{"the gradient does not add to its output"};
  return match_image(query.outputs[0], Bytes(0));
}

std::unique_ptr<BoundKernel> bind_pool(const KernelArguments& arguments) {
  const Type& type = arguments.inputs[0].type;
  return with_storage(type.dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([x = elements<T>(arguments.inputs[0]), y = elements<T>(arguments.outputs[0]), batch = type.shape[0],
                       channels = type.shape[1], pixels = type.shape[2] * type.shape[3], stride = stride_of(type),
                       sums = reinterpret_cast<double*>(arguments.workspace.data()), threads = arguments.threads] {
      for_each_part(batch, threads, 1, [&](int thread, Range part) {
        double* sum = sums + thread * stride;
        for (std::int64_t n = part.begin; n < part.end; ++n) {
          std::fill_n(sum, channels, 0.0);
          simd::row_loops<T>().column_sums(x + n * pixels * channels, pixels, channels, sum);
          for (std::int64_t c = 0; c < channels; ++c) y[n * channels + c] = stored<T>(sum[c] / static_cast<double>(pixels));
        }
      });
    });
  });
}

std::unique_ptr<BoundKernel> bind_grad(const KernelArguments& arguments) {
  const Type& type = arguments.outputs[0].type;
  return with_storage(type.dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([dy = elements<T>(arguments.inputs[0]), dx = elements<T>(arguments.outputs[0]), batch = type.shape[0],
                       channels = type.shape[1], pixels = type.shape[2] * type.shape[3], threads = arguments.threads] {
      for_each_part(batch, threads, 1, [&](int, Range part) {
        for (std::int64_t n = part.begin; n < part.end; ++n) {
          T* image = dx + n * pixels * channels;
          for (std::int64_t c = 0; c < channels; ++c)
            image[c] = stored<T>(to_float(dy[n * channels + c]) / static_cast<double>(pixels));
          for (std::int64_t p = 1; p < pixels; ++p) std::copy_n(image, channels, image + p * channels);
        }
      });
    });
  });
}

}  // namespace

constinit const KernelDef half_global_avg_pool{
    .name = "half_global_avg_pool", .op = "global_avg_pool", .match = match_pool, .bind = bind_pool};
constinit const KernelDef half_global_avg_pool_grad{
    .name = "half_global_avg_pool_grad", .op = "global_avg_pool_grad", .match = match_grad, .bind = bind_grad};

}  // namespace snug::backends::cpu
