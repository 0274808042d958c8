#include <algorithm>

#include "backends/cpu/conv2d_half.h"
#include "backends/cpu/layout_map.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/simd.h"
#include "backends/cpu/simd_loops.h"
#include "backends/cpu/storage.h"

// Weights of 16 bits as floats, in the layout that oneDNN's primitive reads. Blocks of 16 x 16 channels lie together in nearly
// all of its layouts, one way round or the other.

namespace snug::backends::cpu {

namespace {

constexpr std::int64_t kBlock = 16;

// Part of a weight, from `offset` on, and the same in another layout.
struct Copy {
  LayoutMap from, to;
  std::size_t dim;
  std::int64_t first;                // of the part, along dim
  std::int64_t from_stored, stored;  // elements of the whole source and of the target, padding included

  std::int64_t from_place(std::size_t d, std::int64_t index) const { return from.place(d, d == dim ? first + index : index); }
  std::int64_t begin() const { return from_place(dim, 0); }

  // Padding too: without it in the source, what lies behind would be read.
  bool lies_alike() const {
    if (from_stored * to.size(dim) != stored * from.size(dim)) return false;
    for (std::size_t d = 0; d < LayoutMap::kRank; ++d) {
      const std::int64_t zero = d == dim ? begin() : 0;
      for (std::int64_t i = 0; i < to.size(d); ++i) {
        if (from_place(d, i) - zero != to.place(d, i)) return false;
      }
    }
    return true;
  }
  // Both in blocks of 16 x 16 that lie together: the target's rows are the source's columns.
  bool turns_blocks() const {
    if (to.size(4) != 1 || to.size(0) % kBlock != 0 || to.size(1) % kBlock != 0 || first % kBlock != 0) return false;
    const auto steps = [](const auto& place, std::size_t d, std::int64_t size, std::int64_t step) {
      for (std::int64_t i = 0; i < size; ++i) {
        if (place(d, i) != place(d, i / kBlock * kBlock) + i % kBlock * step) return false;
      }
      return true;
    };
    const auto source = [this](std::size_t d, std::int64_t i) { return from_place(d, i); };
    const auto target = [this](std::size_t d, std::int64_t i) { return to.place(d, i); };
    return steps(source, 0, to.size(0), 1) && steps(source, 1, to.size(1), kBlock) && steps(target, 0, to.size(0), kBlock) &&
           steps(target, 1, to.size(1), 1);
  }
};

template <typename T>
void turn_block(const T* from, float* to) {
  float rows[kBlock * kBlock];
  simd::element_loops<T>().widen(from, rows, kBlock * kBlock);
  for (std::int64_t i = 0; i < kBlock; ++i) {
    for (std::int64_t k = 0; k < kBlock; ++k) to[i * kBlock + k] = rows[k * kBlock + i];
  }
}

template <typename T>
std::unique_ptr<BoundKernel> turn_blocks(const Copy& copy, const T* from, float* to, int threads) {
  return make_bound([=] {
    const std::int64_t across = copy.to.size(1) / kBlock;
    for_each_part(copy.to.size(0) / kBlock * across, threads, 1, [&](int, Range part) {
      for (std::int64_t block = part.begin; block < part.end; ++block) {
        const std::int64_t a = block / across * kBlock;
        const std::int64_t b = block % across * kBlock;
        for (std::int64_t h = 0; h < copy.to.size(2); ++h) {
          for (std::int64_t w = 0; w < copy.to.size(3); ++w) {
            turn_block(from + copy.from_place(0, a) + copy.from_place(1, b) + copy.from_place(2, h) + copy.from_place(3, w),
                       to + copy.to({a, b, h, w, 0}));
          }
        }
      }
    });
  });
}

template <typename T>
std::unique_ptr<BoundKernel> copy_each(const Copy& copy, const T* from, float* to, int threads) {
  return make_bound([=] {
    if (copy.stored != copy.to.elements()) std::fill_n(to, copy.stored, 0.0F);  // what only pads the layout is zero
    for_each_part(copy.to.elements(), threads, 64, [&](int, Range part) {
      for_each_element(copy.to, part.begin, part.end, [&](const auto& at, std::int64_t /*number*/) {
        std::int64_t place = 0;
        for (std::size_t d = 0; d < LayoutMap::kRank; ++d) place += copy.from_place(d, at[d]);
        to[copy.to(at)] = to_float(from[place]);
      });
    });
  });
}

}  // namespace

std::unique_ptr<BoundKernel> widen_weights(const Operand& weight, std::int64_t groups, std::size_t dim, std::int64_t first,
                                           const dnnl::memory::desc& layout, float* target, int threads) {
  const dnnl::memory::desc source_layout = descriptor(weight.type, groups);
  const Copy copy{.from = LayoutMap(source_layout),
                  .to = LayoutMap(layout),
                  .dim = dim,
                  .first = first,
                  .from_stored = size_of(source_layout).count() / 2,
                  .stored = size_of(layout).count() / 4};
  return with_storage(weight.type.dtype, [&]<typename T>(T /*tag*/) -> std::unique_ptr<BoundKernel> {
    const T* source = elements<T>(weight);
    if (copy.lies_alike()) {
      return widen_elements(weight.type.dtype, reinterpret_cast<const std::byte*>(source + copy.begin()), target, copy.stored,
                            threads);
    }
    if (copy.turns_blocks()) return turn_blocks(copy, source, target, threads);
    return copy_each(copy, source, target, threads);
  });
}

}  // namespace snug::backends::cpu
