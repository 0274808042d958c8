#include <algorithm>

#include "backends/cpu/convolution.h"
#include "backends/cpu/layout_map.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/simd.h"
#include "backends/cpu/simd_loops.h"

// A weight's gradient comes out of oneDNN in floats, in another layout than the weight of 16 bits has. On its way to the sum it
// is rounded and brought into that layout in one pass.

namespace snug::backends::cpu {

namespace {

template <typename T>
T sum_of(T sum, T fresh) {
  return stored<T>(to_float(sum) + to_float(fresh));
}

bool has_tag(const dnnl::memory::desc& description, dnnl::memory::format_tag tag) {
  return dnnl::memory::desc(description.dims(), description.data_type(), tag) == description;
}

// From rows of 16 output channels to rows of pairs of input channels: blocks of 16 x 16 lie in the same order in both.
std::unique_ptr<BoundKernel> place_pairs(const float* fresh, const Bfloat16* sum, Bfloat16* out, std::int64_t blocks,
                                         int threads) {
  return make_bound([=] {
    for_each_part(blocks, threads, 1, [&](int, Range part) {
      constexpr std::int64_t kBlock = 256;
      const std::int64_t begin = part.begin * kBlock;
      simd::place_row_pairs(fresh + begin, sum == nullptr ? nullptr : sum + begin, out + begin, part.size() * kBlock);
    });
  });
}

template <typename T>
std::unique_ptr<BoundKernel> place_each(const LayoutMap& from, const float* fresh, const LayoutMap& to, const T* sum, T* out,
                                        std::int64_t stored_count, int threads) {
  return make_bound([=] {
    // What only pads the layout is zero.
    if (sum == nullptr && stored_count != to.elements()) std::fill_n(out, stored_count, T{});
    if (sum != nullptr && sum != out) std::copy_n(sum, stored_count, out);
    for_each_part(to.elements(), threads, 64, [&](int, Range part) {
      for_each_element(to, part.begin, part.end, [&](const auto& at, std::int64_t /*number*/) {
        const std::int64_t place = to(at);
        const T rounded = stored<T>(fresh[from(at)]);
        out[place] = sum == nullptr ? rounded : sum_of(out[place], rounded);
      });
    });
  });
}

}  // namespace

std::unique_ptr<BoundKernel> place_gradient(const dnnl::memory::desc& fresh_layout, const std::byte* fresh, const Type& type,
                                            std::int64_t groups, const std::byte* sum, std::byte* out, int threads) {
  const auto* values = reinterpret_cast<const float*>(fresh);
  const dnnl::memory::desc target = descriptor(type, groups);
  const std::int64_t count = size_of(target).count() * 8 / bits_per_element(type.dtype);
  using Tag = dnnl::memory::format_tag;
  if (type.dtype == DType::bf16 && groups == 1 && has_tag(fresh_layout, Tag::ABcd16b16a) && has_tag(target, Tag::ABcd8b16a2b)) {
    return place_pairs(values, reinterpret_cast<const Bfloat16*>(sum), reinterpret_cast<Bfloat16*>(out), count / 256, threads);
  }
  return with_storage(type.dtype, [&]<typename T>(T /*tag*/) {
    return place_each(LayoutMap(fresh_layout), values, LayoutMap(target), reinterpret_cast<const T*>(sum),
                      reinterpret_cast<T*>(out), count, threads);
  });
}

}  // namespace snug::backends::cpu
