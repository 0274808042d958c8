#include "backends/cpu/bf16_gradient.h"

#if defined(__AVX512BF16__)
#include <immintrin.h>
#endif

namespace snug::backends::cpu {

#if defined(__AVX512BF16__)

bool is_compiled_for_bf16_pairs() { return true; }

namespace {

// What lies beside an image.
alignas(64) constexpr std::uint16_t kNothing[2 * kGradientLanes] = {};

// The columns of one row's pairs: [begin, end) have both pixels of the input inside.
struct Inside {
  std::int64_t begin, end;
};

Inside inside_pairs(const GradientImages& of) {
  const std::int64_t whole = of.out_width / 2;
  std::int64_t begin = 0;
  while (begin < whole && 2 * begin * of.stride_width + of.left < 0) ++begin;
  std::int64_t end = whole;
  while (end > begin && (2 * end - 1) * of.stride_width + of.left >= of.in_width) --end;
  return {begin, end};
}

// The sums of kGradientRows output channels and kVectors vectors of input channels stay in registers while all pairs of all
// images go by: for each pair two loads and a shuffle a vector, and a broadcast for each of the rows' products.
template <int kVectors>
class Sums {
 public:
  Sums(const float* from, std::int64_t pitch) {
    for (std::int64_t row = 0; row < kGradientRows; ++row)
      for (int v = 0; v < kVectors; ++v) sums_[row][v] = _mm512_loadu_ps(from + row * pitch + v * kGradientLanes);
  }
  void store(float* to, std::int64_t pitch) const {
    for (std::int64_t row = 0; row < kGradientRows; ++row)
      for (int v = 0; v < kVectors; ++v) _mm512_storeu_ps(to + row * pitch + v * kGradientLanes, sums_[row][v]);
  }

  [[gnu::always_inline]] void add(const std::uint16_t* first, const std::uint16_t* second, const std::uint32_t* pair) {
    __m512bh inputs[kVectors];
    if constexpr (kVectors == 1) {
      const __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(first)));
      const __m512i high = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(second)));
      inputs[0] = reinterpret_cast<__m512bh>(_mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
    } else {
      const __m512i a = _mm512_loadu_si512(first);
      const __m512i b = _mm512_loadu_si512(second);
      inputs[0] = reinterpret_cast<__m512bh>(_mm512_permutex2var_epi16(a, interleave(0), b));
      inputs[1] = reinterpret_cast<__m512bh>(_mm512_permutex2var_epi16(a, interleave(kGradientLanes), b));
    }
#pragma GCC unroll 8
    for (std::int64_t row = 0; row < kGradientRows; ++row) {
      const auto gradient = reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(pair[row])));
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sums_[row][v] = _mm512_dpbf16_ps(sums_[row][v], inputs[v], gradient);
    }
  }

 private:
  // Element i of the first pixel, element i of the second, for the channels from `channel` on.
  static __m512i interleave(std::int64_t channel) {
    const __m512i ascending = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i first = _mm512_add_epi32(ascending, _mm512_set1_epi32(static_cast<int>(channel)));
    return _mm512_or_si512(first, _mm512_slli_epi32(_mm512_add_epi32(first, _mm512_set1_epi32(2 * kGradientLanes)), 16));
  }

  __m512 sums_[kGradientRows][kVectors];
};

template <int kVectors>
void add_products(const GradientImages& of, const std::uint32_t* pairs, const std::uint16_t* x, float* sums,
                  std::int64_t sums_pitch) {
  const std::int64_t pairs_a_row = (of.out_width + 1) / 2;
  const Inside inside = inside_pairs(of);
  const std::int64_t step = of.stride_width * of.in_channels;
  Sums<kVectors> total(sums, sums_pitch);
  for (std::int64_t n = 0; n < of.images; ++n) {
    for (std::int64_t h = 0; h < of.out_height; ++h) {
      const std::int64_t in_row = h * of.stride_height + of.top;
      if (in_row < 0 || in_row >= of.in_height) continue;
      const std::uint16_t* row = x + (n * of.in_height + in_row) * of.in_width * of.in_channels;
      const std::uint32_t* pair = pairs + (n * of.out_height + h) * pairs_a_row * kGradientRows;
      const auto at_edge = [&](std::int64_t p) __attribute__((always_inline)) {
        const std::int64_t column = 2 * p * of.stride_width + of.left;
        const std::int64_t next = column + of.stride_width;
        const bool has_first = column >= 0 && column < of.in_width;
        const bool has_second = 2 * p + 1 < of.out_width && next >= 0 && next < of.in_width;
        total.add(has_first ? row + column * of.in_channels : kNothing, has_second ? row + next * of.in_channels : kNothing,
                  pair + p * kGradientRows);
      };
      for (std::int64_t p = 0; p < inside.begin; ++p) at_edge(p);
      const std::uint16_t* pixel = row + (2 * inside.begin * of.stride_width + of.left) * of.in_channels;
      for (std::int64_t p = inside.begin; p < inside.end; ++p, pixel += 2 * step)
        total.add(pixel, pixel + step, pair + p * kGradientRows);
      for (std::int64_t p = inside.end; p < pairs_a_row; ++p) at_edge(p);
    }
  }
  total.store(sums, sums_pitch);
}

}  // namespace

void pair_pixels(const std::uint16_t* dy, std::int64_t images, std::int64_t out_height, std::int64_t out_width,
                 std::int64_t pitch, std::uint32_t* pairs) {
  for (std::int64_t row = 0; row < images * out_height; ++row) {
    const std::uint16_t* pixel = dy + row * out_width * pitch;
    for (std::int64_t w = 0; w < out_width; w += 2, pairs += kGradientRows) {
      const __m128i first = _mm_loadu_si128(reinterpret_cast<const __m128i*>(pixel + w * pitch));
      const __m128i second =
          w + 1 < out_width ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(pixel + (w + 1) * pitch)) : _mm_setzero_si128();
      _mm_storeu_si128(reinterpret_cast<__m128i*>(pairs), _mm_unpacklo_epi16(first, second));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(pairs + 4), _mm_unpackhi_epi16(first, second));
    }
  }
}

void add_pair_products(const GradientImages& of, const std::uint32_t* pairs, const std::uint16_t* x, int vectors, float* sums,
                       std::int64_t sums_pitch) {
  if (vectors == 1) {
    add_products<1>(of, pairs, x, sums, sums_pitch);
  } else {
    add_products<2>(of, pairs, x, sums, sums_pitch);
  }
}

#else  // another family of processors, where the kernel refuses and is never bound

bool is_compiled_for_bf16_pairs() { return false; }
void pair_pixels(const std::uint16_t*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::uint32_t*) {}
void add_pair_products(const GradientImages&, const std::uint32_t*, const std::uint16_t*, int, float*, std::int64_t) {}

#endif

}  // namespace snug::backends::cpu
