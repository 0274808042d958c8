#include <algorithm>
#include <cmath>

#include "backends/reference/kernels.h"
#include "backends/reference/sequence/rows.h"
#include "ops/sequence/attention.h"

namespace snug::backends::reference {

namespace {

using Geometry = ops::StepGeometry;

// What a cache holds, where it is not in the same bytes already.
template <typename T>
void carry_over(const View<const T>& from, const View<T>& to, std::int64_t elements) {
  if (from.data != to.data) std::copy_n(from.data, elements, to.data);
}

template <typename T>
void run_step(const Call& call) {
  const Geometry g = Geometry::from(call.input_shape(0), call.input_shape(1), call.attributes);
  const View<const T> qkv = call.input<T>(0);
  const View<const std::int32_t> positions = call.input<std::int32_t>(3);
  const View<T> y = call.output<T>(0), keys = call.output<T>(1), values = call.output<T>(2);
  const double scale = call.attributes.real("scale");
  const std::int64_t elements = g.examples * g.context * g.kv_width();
  carry_over(call.input<T>(1), keys, elements);
  carry_over(call.input<T>(2), values, elements);
  parallel_for(call, g.examples * g.kv_heads, [&](std::int64_t i) {
    const std::int64_t example = i / g.kv_heads, kv_head = i % g.kv_heads, first = kv_head * g.head_size;
    const std::int64_t position = positions(example), begin = example * g.context;
    const bool is_padding = position < 0 || position >= g.context;
    if (!is_padding) {
      std::copy_n(&qkv(example, g.width() + first), g.head_size, &keys(begin + position, first));
      std::copy_n(&qkv(example, g.width() + g.kv_width() + first), g.head_size, &values(begin + position, first));
    }
    const std::int64_t seen = is_padding ? 0 : position + 1;
    for (std::int64_t head = kv_head * g.heads_per_kv_head(); head < (kv_head + 1) * g.heads_per_kv_head(); ++head) {
      const T* query = &qkv(example, head * g.head_size);
      const auto score = [&](std::int64_t j) { return scale * dot(query, &keys(begin + j, first), g.head_size); };
      double largest = ops::kNothingSeen, sum = 0;
      for (std::int64_t j = 0; j < seen; ++j) largest = std::max(largest, score(j));
      for (std::int64_t j = 0; j < seen; ++j) sum += std::exp(score(j) - largest);
      for (std::int64_t c = 0; c < g.head_size; c += kColumnBlock) {
        const std::int64_t count = std::min(kColumnBlock, g.head_size - c);
        double sums[kColumnBlock] = {};
        for (std::int64_t j = 0; j < seen; ++j) {
          const double probability = std::exp(score(j) - largest) / sum;
          const T* value = &values(begin + j, first + c);
          for (std::int64_t k = 0; k < count; ++k) sums[k] += probability * value[k];
        }
        for (std::int64_t k = 0; k < count; ++k) y(example, head * g.head_size + c + k) = static_cast<T>(sums[k]);
      }
    }
  });
}

constexpr Signature kSignature{.inputs = {Element::real, Element::real, Element::real, Element::index}};

}  // namespace

constinit const KernelDef attention_step =
    define<[]<typename T>() { return run_step<T>; }, kSignature>("reference_attention_step");

}  // namespace snug::backends::reference
