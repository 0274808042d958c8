#include "ops/sequence/dynamic_conv.h"

#include <algorithm>

#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/sequence/dynamic_conv_loops.h"
#include "backends/cpu/sequence/rows.h"

// Lightweight and dynamic convolutions: each row of a result by one thread. The gradient of kernels that all rows share is a sum
// over chunks of rows first, whose number depends on the shape alone, then over the chunks in order. So the bits are the same on
// any number of threads.

namespace snug::backends::cpu {

namespace {

using ops::DynamicConvGeometry;
using simd::HeadRows;

// More rows would lose bits in a sum of floats; fewer would need more workspace.
constexpr std::int64_t kRowsInChunk = 128;

std::int64_t chunks_of(const Type& x) { return (x.shape[0] + kRowsInChunk - 1) / kRowsInChunk; }

// Of two operands and an accumulator.
std::optional<std::string> objection(const KernelQuery& query) {
  return objection_to_rows(query, {0, 1, accumulates(query.attributes) ? 2U : 0U});
}

KernelMatch match_sums_of_rows(const KernelQuery& query) {
  if (auto reason = objection(query)) return Refuse{*reason};
  return Accept{};
}

HeadRows rows_of_head(const DynamicConvGeometry& g, std::int64_t count) {
  return {.count = count, .stride = g.columns, .size = g.head_size()};
}

// sum_of(row, head, position, addend, to) for every head of every row.
template <typename T, typename SumOf>
std::unique_ptr<BoundKernel> bind_sums_of_rows(const KernelArguments& arguments, const DynamicConvGeometry& g,
                                               const SumOf& sum_of) {
  return make_bound(
      [g, sum_of, addend = addend_of<T>(arguments), to = elements<T>(arguments.outputs[0]), threads = arguments.threads] {
        for_each_part(g.rows(), threads, 1, [&](int, Range part) {
          for (std::int64_t row = part.begin; row < part.end; ++row) {
            for (std::int64_t head = 0; head < g.heads; ++head) {
              const std::int64_t at = row * g.columns + head * g.head_size();
              sum_of(row, head, row % g.length, addend == nullptr ? nullptr : addend + at, to + at);
            }
          }
        });
      });
}

// A row is the sum of the rows that its taps see.
std::unique_ptr<BoundKernel> bind_forward(const KernelArguments& arguments) {
  const Type& type = arguments.inputs[0].type;
  const auto g = DynamicConvGeometry::from(type.shape, arguments.attributes);
  return with_storage(type.dtype, [&]<typename T>(T /*tag*/) {
    return bind_sums_of_rows<T>(arguments, g,
                                [g, x = elements<T>(arguments.inputs[0]), weight = elements<T>(arguments.inputs[1]),
                                 of_row = g.weights_of_row(arguments.inputs[1].type.shape)](
                                    std::int64_t row, std::int64_t head, std::int64_t position, const T* addend, T* to) {
                                  const std::int64_t first = g.first_tap(position), end = g.end_of_taps(position);
                                  simd::dynamic_conv_loops<T>().weigh(
                                      rows_of_head(g, end - first), x + (row + first - g.left) * g.columns + head * g.head_size(),
                                      {.first = weight + row * of_row + head * g.kernel + first, .stride = 1}, addend, to);
                                });
  });
}

// The gradient of a row is the sum of those of the rows whose taps see it, each one tap lower than that of the row before.
std::unique_ptr<BoundKernel> bind_grad_input(const KernelArguments& arguments) {
  const Type& type = arguments.inputs[0].type;
  const auto g = DynamicConvGeometry::from(type.shape, arguments.attributes);
  return with_storage(type.dtype, [&]<typename T>(T /*tag*/) {
    return bind_sums_of_rows<T>(
        arguments, g,
        [g, dy = elements<T>(arguments.inputs[0]), weight = elements<T>(arguments.inputs[1]),
         of_row = g.weights_of_row(arguments.inputs[1].type.shape)](std::int64_t row, std::int64_t head, std::int64_t position,
                                                                    const T* addend, T* to) {
          const std::int64_t first = g.first_reader(position), tap = position + g.left - first;
          const std::int64_t first_row = row + first - position;
          simd::dynamic_conv_loops<T>().weigh(
              rows_of_head(g, g.end_of_readers(position) - first), dy + first_row * g.columns + head * g.head_size(),
              {.first = weight + first_row * of_row + head * g.kernel + tap, .stride = of_row - 1}, addend, to);
        });
  });
}

// dynamic_conv_grad_weight(dy, x, accumulator?)
KernelMatch match_weights_of_rows(const KernelQuery& query) {
  if (auto reason = objection(query)) return Refuse{*reason};
  return Accept{.workspace = size_of_floats(query.outputs[0].shape[1], query.threads)};
}

std::unique_ptr<BoundKernel> bind_weights_of_rows(const KernelArguments& arguments) {
  const Type& type = arguments.inputs[0].type;
  const auto g = DynamicConvGeometry::from(type.shape, arguments.attributes);
  return with_storage(type.dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([g, dy = elements<T>(arguments.inputs[0]), x = elements<T>(arguments.inputs[1]),
                       addend = addend_of<T>(arguments), to = elements<T>(arguments.outputs[0]),
                       scratch = reinterpret_cast<float*>(arguments.workspace.data()), threads = arguments.threads] {
      const std::int64_t count = g.heads * g.kernel;
      for_each_part(g.rows(), threads, 1, [&](int thread, Range part) {
        float* const gradients = scratch + thread * stride_of_floats(count);
        for (std::int64_t row = part.begin; row < part.end; ++row) {
          const std::int64_t first = g.first_tap(row % g.length), end = g.end_of_taps(row % g.length);
          std::fill_n(gradients, count, 0.0F);  // also of the taps that lie beyond the example
          for (std::int64_t head = 0; head < g.heads; ++head) {
            const std::int64_t column = head * g.head_size();
            simd::dynamic_conv_loops<T>().products(rows_of_head(g, end - first), dy + row * g.columns + column,
                                                   x + (row + first - g.left) * g.columns + column,
                                                   gradients + head * g.kernel + first);
          }
          put_row(gradients, addend == nullptr ? nullptr : addend + row * count, to + row * count, count);
        }
      });
    });
  });
}

// lightweight_conv_grad_weight(dy, x, accumulator?)
KernelMatch match_shared_weights(const KernelQuery& query) {
  if (auto reason = objection(query)) return Refuse{*reason};
  return Accept{.workspace = Bytes(4 * chunks_of(query.inputs[0]) * query.outputs[0].elements())};
}

// Adds what the rows of a chunk, which may belong to several examples, give the taps of a head.
template <typename T>
void add_chunk(const DynamicConvGeometry& g, const T* dy, const T* x, Range chunk, std::int64_t head, float* taps) {
  for (std::int64_t example = chunk.begin / g.length * g.length; example < chunk.end; example += g.length) {
    const auto add = [&](Range positions, std::int64_t tap, std::int64_t count) {
      if (positions.begin >= positions.end) return;
      const std::int64_t at = (example + positions.begin) * g.columns + head * g.head_size();
      simd::dynamic_conv_loops<T>().add_products(rows_of_head(g, positions.size()), dy + at, x + at + (tap - g.left) * g.columns,
                                                 count, taps + tap);
    };
    const Range all{std::max<std::int64_t>(0, chunk.begin - example), std::min(g.length, chunk.end - example)};
    // Positions all of whose taps lie within the example.
    const std::int64_t inner = std::clamp(g.left, all.begin, all.end);
    const std::int64_t end_of_inner = std::clamp(g.length + g.left - g.kernel + 1, inner, all.end);
    add({inner, end_of_inner}, 0, g.kernel);
    for (const Range& edge : {Range{all.begin, inner}, Range{end_of_inner, all.end}}) {
      for (std::int64_t tap = 0; tap < g.kernel; ++tap)
        add({std::max(edge.begin, g.left - tap), std::min(edge.end, g.length + g.left - tap)}, tap, 1);
    }
  }
}

std::unique_ptr<BoundKernel> bind_shared_weights(const KernelArguments& arguments) {
  const Type& type = arguments.inputs[0].type;
  const auto g = DynamicConvGeometry::from(type.shape, arguments.attributes);
  return with_storage(type.dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([g, dy = elements<T>(arguments.inputs[0]), x = elements<T>(arguments.inputs[1]),
                       addend = addend_of<T>(arguments), to = elements<T>(arguments.outputs[0]), chunks = chunks_of(type),
                       sums = reinterpret_cast<float*>(arguments.workspace.data()), threads = arguments.threads] {
      const std::int64_t count = g.heads * g.kernel;
#pragma omp parallel for collapse(2) schedule(static) num_threads(threads)
      for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
        for (std::int64_t head = 0; head < g.heads; ++head) {
          const Range rows{chunk * kRowsInChunk, std::min(g.rows(), (chunk + 1) * kRowsInChunk)};
          float* const taps = sums + chunk * count + head * g.kernel;
          std::fill_n(taps, g.kernel, 0.0F);
          add_chunk(g, dy, x, rows, head, taps);
        }
      }
      for (std::int64_t i = 0; i < count; ++i) {
        double sum = 0;
        for (std::int64_t chunk = 0; chunk < chunks; ++chunk) sum += double{sums[chunk * count + i]};
        sums[i] = static_cast<float>(sum);
      }
      put_row(sums, addend, to, count);
    });
  });
}

}  // namespace

constinit const KernelDef simd_lightweight_conv{
    .name = "simd_lightweight_conv", .op = "lightweight_conv", .match = match_sums_of_rows, .bind = bind_forward};
constinit const KernelDef simd_lightweight_conv_grad_input{.name = "simd_lightweight_conv_grad_input",
                                                           .op = "lightweight_conv_grad_input",
                                                           .match = match_sums_of_rows,
                                                           .bind = bind_grad_input};
constinit const KernelDef simd_lightweight_conv_grad_weight{.name = "simd_lightweight_conv_grad_weight",
                                                            .op = "lightweight_conv_grad_weight",
                                                            .match = match_shared_weights,
                                                            .bind = bind_shared_weights};
constinit const KernelDef simd_dynamic_conv{
    .name = "simd_dynamic_conv", .op = "dynamic_conv", .match = match_sums_of_rows, .bind = bind_forward};
constinit const KernelDef simd_dynamic_conv_grad_input{.name = "simd_dynamic_conv_grad_input",
                                                       .op = "dynamic_conv_grad_input",
                                                       .match = match_sums_of_rows,
                                                       .bind = bind_grad_input};
constinit const KernelDef simd_dynamic_conv_grad_weight{.name = "simd_dynamic_conv_grad_weight",
                                                        .op = "dynamic_conv_grad_weight",
                                                        .match = match_weights_of_rows,
                                                        .bind = bind_weights_of_rows};

}  // namespace snug::backends::cpu
