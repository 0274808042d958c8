#include <algorithm>

#include "backends/cpu/layout_map.h"
#include "backends/cpu/onednn/convolution.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/simd/loops.h"

// oneDNN gives a weight's gradient in floats, in a different layout than that of the 16-bit weight. Before it is added to the
// sum, it is rounded and converted to that layout in one pass.

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
void place_pairs(const float* fresh, const Bfloat16* sum, Bfloat16* out, std::int64_t blocks, int threads) {
  for_each_part(blocks, threads, 1, [&](int, Range part) {
    constexpr std::int64_t kBlock = 256;
    const std::int64_t begin = part.begin * kBlock;
    simd::place_row_pairs(fresh + begin, sum == nullptr ? nullptr : sum + begin, out + begin, part.size() * kBlock);
  });
}

template <typename T>
void place_alike(const float* fresh, const T* sum, T* out, std::int64_t count, int threads) {
  const auto& loops = simd::element_loops<T>();
  run_on_parts(count, threads, [&](std::int64_t first, std::int64_t size) {
    if (sum == nullptr) return loops.narrow(fresh + first, out + first, size);
    loops.add_floats(sum + first, fresh + first, out + first, size);
  });
}

template <typename T>
void place_each(const LayoutMap& from, const float* fresh, const LayoutMap& to, const T* sum, T* out, std::int64_t stored_count,
                int threads) {
  // Padding of the layout is zero.
  if (sum == nullptr && stored_count != to.elements()) std::fill_n(out, stored_count, T{});
  if (sum != nullptr && sum != out) std::copy_n(sum, stored_count, out);
  for_each_part(to.elements(), threads, 64, [&](int, Range part) {
    for_each_element(to, part.begin, part.end, [&](const auto& at, std::int64_t /*number*/) {
      const std::int64_t place = to(at);
      const T rounded = stored<T>(fresh[from(at)]);
      out[place] = sum == nullptr ? rounded : sum_of(out[place], rounded);
    });
  });
}

// A placer from `place(sum, out)`, whose arguments have the elements' type.
template <typename T, typename Place>
GradientPlacer placer(Place place) {
  return [place = std::move(place)](const std::byte* sum, std::byte* out) {
    place(reinterpret_cast<const T*>(sum), reinterpret_cast<T*>(out));
  };
}

}  // namespace

GradientPlacer gradient_placer(const dnnl::memory::desc& fresh_layout, const float* fresh, const Type& type, std::int64_t groups,
                               int threads) {
  const dnnl::memory::desc target = descriptor(type, groups);
  const std::int64_t count = size_of(target).count() * 8 / bits_per_element(type.dtype);
  using Tag = dnnl::memory::format_tag;
  if (type.dtype == DType::bf16 && groups == 1 && has_tag(fresh_layout, Tag::ABcd16b16a) && has_tag(target, Tag::ABcd8b16a2b)) {
    return placer<Bfloat16>([=](const Bfloat16* sum, Bfloat16* out) { place_pairs(fresh, sum, out, count / 256, threads); });
  }
  const bool is_alike = descriptor(as_floats(type), groups) == fresh_layout;
  return with_storage(type.dtype, [&]<typename T>(T /*tag*/) {
    if (is_alike) return placer<T>([=](const T* sum, T* out) { place_alike(fresh, sum, out, count, threads); });
    return placer<T>([=, from = LayoutMap(fresh_layout), to = LayoutMap(target)](const T* sum, T* out) {
      place_each(from, fresh, to, sum, out, count, threads);
    });
  });
}

std::unique_ptr<BoundKernel> place_gradient(const dnnl::memory::desc& fresh_layout, const std::byte* fresh, const Type& type,
                                            std::int64_t groups, const std::byte* sum, std::byte* out, int threads) {
  return make_bound(
      [sum, out, place = gradient_placer(fresh_layout, reinterpret_cast<const float*>(fresh), type, groups, threads)] {
        place(sum, out);
      });
}

}  // namespace snug::backends::cpu
