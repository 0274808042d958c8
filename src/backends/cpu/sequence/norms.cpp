#include <algorithm>

#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/sequence/loops.h"
#include "backends/cpu/sequence/rows.h"

// Layer norm and RMS norm, whose statistics belong to a row: each row by one thread. The gradients of the parameters are sums
// over all rows: over chunks of rows first, whose number depends on the shape alone, then over the chunks in order. So the bits
// are the same on any number of threads.

namespace snug::backends::cpu {

namespace {

using simd::RowNorm;

// More rows would lose bits in a sum of floats; fewer would need more workspace.
constexpr std::int64_t kRowsInChunk = 128;

std::int64_t chunks_of(const Type& x) { return (x.shape[0] + kRowsInChunk - 1) / kRowsInChunk; }

RowNorm rows_from(RowNorm norm, std::int64_t row) {
  if (norm.mean != nullptr) norm.mean += row;
  norm.inverse += row;
  return norm;
}

// x, weight and, for layer norm, bias.
template <bool HasMean>
KernelMatch match_norm(const KernelQuery& query) {
  const auto reason = HasMean ? objection_to_rows(query, {0}, {1, 2}) : objection_to_rows(query, {0}, {1});
  if (reason) return Refuse{*reason};
  return Accept{};
}

template <bool HasMean>
std::unique_ptr<BoundKernel> bind_norm(const KernelArguments& arguments) {
  const Type& type = arguments.outputs[0].type;
  const RowNorm norm{.weight = floats(arguments.inputs[1]),
                     .bias = HasMean ? floats(arguments.inputs[2]) : nullptr,
                     .mean = HasMean ? floats(arguments.outputs[1]) : nullptr,
                     .inverse = floats(arguments.outputs.back())};
  return with_storage(type.dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([norm, x = elements<T>(arguments.inputs[0]), y = elements<T>(arguments.outputs[0]), rows = type.shape[0],
                       columns = type.shape[1], epsilon = arguments.attributes.real("epsilon"), threads = arguments.threads] {
      for_each_part(rows, threads, 1, [&](int, Range part) {
        simd::norm_loops<T>().normalize(x + part.begin * columns, y + part.begin * columns, part.size(), columns,
                                        rows_from(norm, part.begin), epsilon);
      });
    });
  });
}

// dy, x, weight, mean (for layer norm), inverse
template <bool HasMean>
KernelMatch match_gradient(const KernelQuery& query) {
  const bool adds = accumulates(query.attributes);
  const auto reason = HasMean ? objection_to_rows(query, {0, 1, adds ? 5U : 0U}, {2, 3, 4})
                              : objection_to_rows(query, {0, 1, adds ? 4U : 0U}, {2, 3});
  if (reason) return Refuse{*reason};
  return Accept{};
}

template <bool HasMean>
std::unique_ptr<BoundKernel> bind_gradient(const KernelArguments& arguments) {
  const Type& type = arguments.outputs[0].type;
  const RowNorm norm{.weight = floats(arguments.inputs[2]),
                     .bias = nullptr,
                     .mean = HasMean ? floats(arguments.inputs[3]) : nullptr,
                     .inverse = floats(arguments.inputs[HasMean ? 4 : 3])};
  return with_storage(type.dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([norm, dy = elements<T>(arguments.inputs[0]), x = elements<T>(arguments.inputs[1]),
                       sum = addend_of<T>(arguments), dx = elements<T>(arguments.outputs[0]), rows = type.shape[0],
                       columns = type.shape[1], threads = arguments.threads] {
      for_each_part(rows, threads, 1, [&](int, Range part) {
        const std::int64_t begin = part.begin * columns;
        simd::norm_loops<T>().gradient(dy + begin, x + begin, sum == nullptr ? nullptr : sum + begin, dx + begin, part.size(),
                                       columns, rows_from(norm, part.begin));
      });
    });
  });
}

// The sums of each chunk: one row for the weight, and for layer norm one for the bias.
template <bool HasMean>
Bytes size_of_sums(const Type& x) {
  return Bytes(4 * chunks_of(x) * (HasMean ? 2 : 1) * x.shape[1]);
}

// dy, x, mean (for layer norm), inverse
template <bool HasMean>
KernelMatch match_parameters(const KernelQuery& query) {
  const bool adds = accumulates(query.attributes);
  const auto reason = HasMean ? objection_to_rows(query, {0, 1}, {2, 3}) : objection_to_rows(query, {0, 1}, {2, adds ? 3U : 2U});
  if (reason) return Refuse{*reason};
  return Accept{.workspace = size_of_sums<HasMean>(query.inputs[1])};
}

template <bool HasMean>
std::unique_ptr<BoundKernel> bind_parameters(const KernelArguments& arguments) {
  const Type& type = arguments.inputs[1].type;
  const RowNorm norm{.weight = nullptr,
                     .bias = nullptr,
                     .mean = HasMean ? floats(arguments.inputs[2]) : nullptr,
                     .inverse = floats(arguments.inputs[HasMean ? 3 : 2])};
  return with_storage(type.dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([norm, dy = elements<T>(arguments.inputs[0]), x = elements<T>(arguments.inputs[1]),
                       addend = addend_of<float>(arguments), weight = floats(arguments.outputs[0]),
                       bias = HasMean ? floats(arguments.outputs[1]) : nullptr, rows = type.shape[0], columns = type.shape[1],
                       chunks = chunks_of(type), sums = reinterpret_cast<float*>(arguments.workspace.data()),
                       threads = arguments.threads] {
      float* const bias_sums = bias == nullptr ? nullptr : sums + chunks * columns;
#pragma omp parallel for schedule(static) num_threads(threads)
      for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
        const std::int64_t first = chunk * kRowsInChunk;
        simd::norm_loops<T>().parameter_sums(dy + first * columns, x + first * columns, std::min(kRowsInChunk, rows - first),
                                             columns, rows_from(norm, first), sums + chunk * columns,
                                             bias_sums == nullptr ? nullptr : bias_sums + chunk * columns);
      }
      const auto total = [&](const float* parts, std::int64_t column) {
        double sum = 0;
        for (std::int64_t chunk = 0; chunk < chunks; ++chunk) sum += static_cast<double>(parts[chunk * columns + column]);
        return static_cast<float>(sum);
      };
      for (std::int64_t column = 0; column < columns; ++column) {
        const float fresh = total(sums, column);
        weight[column] = addend == nullptr ? fresh : addend[column] + fresh;
        if (bias != nullptr) bias[column] = total(bias_sums, column);
      }
    });
  });
}

}  // namespace

constinit const KernelDef simd_layer_norm{
    .name = "simd_layer_norm", .op = "layer_norm", .match = match_norm<true>, .bind = bind_norm<true>};
constinit const KernelDef simd_layer_norm_grad_input{.name = "simd_layer_norm_grad_input",
                                                     .op = "layer_norm_grad_input",
                                                     .match = match_gradient<true>,
                                                     .bind = bind_gradient<true>};
constinit const KernelDef simd_layer_norm_grad_parameters{.name = "simd_layer_norm_grad_parameters",
                                                          .op = "layer_norm_grad_parameters",
                                                          .match = match_parameters<true>,
                                                          .bind = bind_parameters<true>};
constinit const KernelDef simd_rms_norm{
    .name = "simd_rms_norm", .op = "rms_norm", .match = match_norm<false>, .bind = bind_norm<false>};
constinit const KernelDef simd_rms_norm_grad_input{.name = "simd_rms_norm_grad_input",
                                                   .op = "rms_norm_grad_input",
                                                   .match = match_gradient<false>,
                                                   .bind = bind_gradient<false>};
constinit const KernelDef simd_rms_norm_grad_weight{.name = "simd_rms_norm_grad_weight",
                                                    .op = "rms_norm_grad_weight",
                                                    .match = match_parameters<false>,
                                                    .bind = bind_parameters<false>};

}  // namespace snug::backends::cpu
