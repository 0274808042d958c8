#include <algorithm>

#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/sequence/loops.h"
#include "backends/cpu/sequence/rows.h"
#include "backends/cpu/sequence/step_loops.h"
#include "backends/cpu/simd/loops.h"
#include "ops/sequence/attention.h"
#include "ops/sequence/rotary_angles.h"

// What depends on a row's position, where each example has one row at a time.

namespace snug::backends::cpu {

namespace {

const std::int32_t* indices_of(const Operand& operand) { return reinterpret_cast<const std::int32_t*>(operand.data); }

// add_positions_at(x, table, positions)
KernelMatch match_add_positions_at(const KernelQuery& query) {
  if (auto reason = objection_to_rows(query, {0, 1})) return Refuse{*reason};
  return Accept{};
}

std::unique_ptr<BoundKernel> bind_add_positions_at(const KernelArguments& arguments) {
  const Type& type = arguments.outputs[0].type;
  return with_storage(type.dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([x = elements<T>(arguments.inputs[0]), table = elements<T>(arguments.inputs[1]),
                       positions = indices_of(arguments.inputs[2]), y = elements<T>(arguments.outputs[0]), rows = type.shape[0],
                       columns = type.shape[1], most = arguments.inputs[1].type.shape[0]] {
      for (std::int64_t row = 0; row < rows; ++row) {
        const std::int64_t position = positions[row];
        const T* const from = x + row * columns;
        T* const to = y + row * columns;
        if (position >= 0 && position < most) {
          simd::element_loops<T>().add(from, table + position * columns, to, columns);
        } else if (from != to) {
          std::copy_n(from, columns, to);
        }
      }
    });
  });
}

// rotary_at(x, positions)
KernelMatch match_rotary_at(const KernelQuery& query) {
  if (auto reason = objection_to_rows(query, {0})) return Refuse{*reason};
  return Accept{.workspace = size_of_floats(query.attributes.integer("head_size"), 1)};
}

std::unique_ptr<BoundKernel> bind_rotary_at(const KernelArguments& arguments) {
  const Type& type = arguments.outputs[0].type;
  const std::int64_t size = arguments.attributes.integer("head_size");
  return with_storage(type.dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([x = elements<T>(arguments.inputs[0]), y = elements<T>(arguments.outputs[0]),
                       positions = indices_of(arguments.inputs[1]), rows = type.shape[0], columns = type.shape[1],
                       heads = arguments.attributes.integer("heads"), size,
                       frequencies = ops::rotary_frequencies(arguments.attributes),
                       cosine = reinterpret_cast<float*>(arguments.workspace.data())] {
      float* const sine = cosine + size / 2;
      const simd::RowRotation rotation{.heads = heads, .half = size / 2, .cosine = cosine, .sine = sine};
      for (std::int64_t row = 0; row < rows; ++row) {
        simd::rotation_angles(positions[row], frequencies.data(), size / 2, cosine, sine);
        const T* const from = x + row * columns;
        T* const to = y + row * columns;
        simd::table_loops<T>().rotate(rotation, from, to);
        if (from != to) std::copy_n(from + heads * size, columns - heads * size, to + heads * size);
      }
    });
  });
}

// attention_step(qkv, keys, values, positions). A head by one thread, so the bits are the same on any number of threads.
KernelMatch match_attention_step(const KernelQuery& query) {
  if (auto reason = objection_to_rows(query, {0, 1, 2})) return Refuse{*reason};
  const auto g = ops::StepGeometry::from(query.inputs[0].shape, query.inputs[1].shape, query.attributes);
  return Accept{.workspace = size_of_floats(g.context, query.threads)};
}

template <typename T>
struct AttentionStep {
  ops::StepGeometry g;
  float scale;
  const T *qkv, *keys_before, *values_before;
  const std::int32_t* positions;
  T *y, *keys, *values;
  float* weights;
  int threads;

  // The cache with the rows' own keys and values; it is in place already but in a program that keeps the one before.
  void remember() const {
    const std::int64_t width = g.kv_width();
    if (keys != keys_before) std::copy_n(keys_before, g.examples * g.context * width, keys);
    if (values != values_before) std::copy_n(values_before, g.examples * g.context * width, values);
    for (std::int64_t n = 0; n < g.examples; ++n) {
      if (positions[n] < 0 || positions[n] >= g.context) continue;
      const T* const own = qkv + n * g.columns() + g.width();
      const std::int64_t at = (n * g.context + positions[n]) * width;
      std::copy_n(own, width, keys + at);
      std::copy_n(own + width, width, values + at);
    }
  }

  void attend(std::int64_t n, std::int64_t head, int thread) const {
    T* const to = y + (n * g.heads + head) * g.head_size;
    if (positions[n] < 0 || positions[n] >= g.context) {
      std::fill_n(to, g.head_size, T{});
      return;
    }
    const std::int64_t begin = n * g.context * g.kv_width() + head / g.heads_per_kv_head() * g.head_size;
    const simd::SeenKeys seen{
        .count = std::int64_t{positions[n]} + 1, .stride = g.kv_width(), .size = g.head_size, .scale = scale};
    simd::step_loops<T>().attend(seen, qkv + n * g.columns() + head * g.head_size, keys + begin, values + begin, to,
                                 weights + thread * stride_of_floats(g.context));
  }

  void operator()() const {
    remember();
    std::int64_t seen = 0;
    for (std::int64_t n = 0; n < g.examples; ++n) seen += std::max(0, positions[n]);
    // Short texts take less time than waking the other threads.
    constexpr std::int64_t kFew = 32'768;
    const int used = seen * g.width() < kFew ? 1 : threads;
    for_each_item(g.examples * g.heads, used,
                  [&](int thread, std::int64_t item) { attend(item / g.heads, item % g.heads, thread); });
  }
};

std::unique_ptr<BoundKernel> bind_attention_step(const KernelArguments& arguments) {
  const Type& qkv = arguments.inputs[0].type;
  return with_storage(qkv.dtype, [&]<typename T>(T /*tag*/) {
    return make_bound(AttentionStep<T>{
        .g = ops::StepGeometry::from(qkv.shape, arguments.inputs[1].type.shape, arguments.attributes),
        .scale = static_cast<float>(arguments.attributes.real("scale")),
        .qkv = elements<T>(arguments.inputs[0]),
        .keys_before = elements<T>(arguments.inputs[1]),
        .values_before = elements<T>(arguments.inputs[2]),
        .positions = indices_of(arguments.inputs[3]),
        .y = elements<T>(arguments.outputs[0]),
        .keys = elements<T>(arguments.outputs[1]),
        .values = elements<T>(arguments.outputs[2]),
        .weights = reinterpret_cast<float*>(arguments.workspace.data()),
        .threads = arguments.threads,
    });
  });
}

}  // namespace

constinit const KernelDef simd_add_positions_at{
    .name = "simd_add_positions_at", .op = "add_positions_at", .match = match_add_positions_at, .bind = bind_add_positions_at};
constinit const KernelDef simd_rotary_at{
    .name = "simd_rotary_at", .op = "rotary_at", .match = match_rotary_at, .bind = bind_rotary_at};
constinit const KernelDef simd_attention_step{
    .name = "simd_attention_step", .op = "attention_step", .match = match_attention_step, .bind = bind_attention_step};

}  // namespace snug::backends::cpu
