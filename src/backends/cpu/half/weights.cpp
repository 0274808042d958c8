#include <algorithm>

#include "backends/cpu/half/conv2d.h"
#include "backends/cpu/layout_map.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/simd/loops.h"
#include "backends/cpu/storage.h"

// 16-bit weights as floats, in the layout that oneDNN's primitive reads. Blocks of 16 x 16 channels are contiguous in nearly all
// of its layouts, in one order or transposed.

namespace snug::backends::cpu {

namespace {

constexpr std::int64_t kBlock = kWeightBlock;

// Slices of a weight along `dim`, and one in another layout.
struct Copy {
  LayoutMap from, to;
  std::size_t dim;
  std::int64_t from_stored, stored;  // elements of the whole source and of the target, padding included

  std::int64_t width() const { return to.size(dim); }
  // The distance between slices.
  std::int64_t step() const { return from.size(dim) > width() ? from.place(dim, width()) : 0; }
  bool slices_are_alike() const {
    for (std::int64_t i = 0; i < from.size(dim); ++i) {
      if (from.place(dim, i) != i / width() * step() + from.place(dim, i % width())) return false;
    }
    return from.size(dim) % width() == 0;
  }

  // Padding too: without it in the source, bytes after it would be read.
  bool lies_alike() const {
    if (from_stored * width() != stored * from.size(dim)) return false;
    for (std::size_t d = 0; d < LayoutMap::kRank; ++d) {
      for (std::int64_t i = 0; i < to.size(d); ++i) {
        if (from.place(d, i) != to.place(d, i)) return false;
      }
    }
    return true;
  }
  // Both in contiguous blocks of 16 x 16: the target's rows are the source's columns.
  bool turns_blocks() const {
    if (to.size(4) != 1 || to.size(0) % kBlock != 0 || to.size(1) % kBlock != 0) return false;
    const auto steps = [](const LayoutMap& map, std::size_t d, std::int64_t size, std::int64_t step) {
      for (std::int64_t i = 0; i < size; ++i) {
        if (map.place(d, i) != map.place(d, i / kBlock * kBlock) + i % kBlock * step) return false;
      }
      return true;
    };
    return steps(from, 0, to.size(0), 1) && steps(from, 1, to.size(1), kBlock) && steps(to, 0, to.size(0), kBlock) &&
           steps(to, 1, to.size(1), 1);
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
void turn_blocks(const Copy& copy, const T* from, float* to, int threads) {
  const std::int64_t across = copy.to.size(1) / kBlock;
  for_each_part(copy.to.size(0) / kBlock * across, threads, 1, [&](int, Range part) {
    for (std::int64_t block = part.begin; block < part.end; ++block) {
      const std::int64_t a = block / across * kBlock;
      const std::int64_t b = block % across * kBlock;
      for (std::int64_t h = 0; h < copy.to.size(2); ++h) {
        for (std::int64_t w = 0; w < copy.to.size(3); ++w)
          turn_block(from + copy.from({a, b, h, w, 0}), to + copy.to({a, b, h, w, 0}));
      }
    }
  });
}

template <typename T>
void copy_each(const Copy& copy, const T* from, float* to, int threads) {
  if (copy.stored != copy.to.elements()) std::fill_n(to, copy.stored, 0.0F);  // padding of the layout is zero
  for_each_part(copy.to.elements(), threads, 64, [&](int, Range part) {
    for_each_element(copy.to, part.begin, part.end,
                     [&](const auto& at, std::int64_t /*number*/) { to[copy.to(at)] = to_float(from[copy.from(at)]); });
  });
}

}  // namespace

HalfImages::BringWeights widen_weights(const Operand& weight, std::int64_t groups, std::size_t dim,
                                       const dnnl::memory::desc& layout, float* target, int threads) {
  const dnnl::memory::desc source_layout = descriptor(weight.type, groups);
  Copy copy{.from = LayoutMap(source_layout),
            .to = LayoutMap(layout),
            .dim = dim,
            .from_stored = size_of(source_layout).count() / 2,
            .stored = size_of(layout).count() / 4};
  SNUG_CHECK(copy.slices_are_alike(), "a slice of {} is not made of whole blocks", to_string(weight.type));
  return with_storage(weight.type.dtype, [&]<typename T>(T /*tag*/) -> HalfImages::BringWeights {
    const auto slice = [source = elements<T>(weight), width = copy.width(), step = copy.step()](std::int64_t first) {
      return source + first / width * step;
    };
    if (copy.lies_alike()) {
      return [=, count = copy.stored](std::int64_t first) {
        run_on_parts(count, threads, [&, from = slice(first)](std::int64_t begin, std::int64_t size) {
          simd::element_loops<T>().widen(from + begin, target + begin, size);
        });
      };
    }
    if (copy.turns_blocks())
      return [=, copy = std::move(copy)](std::int64_t first) { turn_blocks(copy, slice(first), target, threads); };
    return [=, copy = std::move(copy)](std::int64_t first) { copy_each(copy, slice(first), target, threads); };
  });
}

}  // namespace snug::backends::cpu
