#include "backends/cpu/pairs/bf16_gradient.h"

#if defined(__AVX512BF16__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // false positive in GCC 12's header
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif

namespace snug::backends::cpu {

#if defined(__AVX512BF16__)

bool is_compiled_for_bf16_pairs() { return true; }

namespace {

// Zeros, for pixels beside an image.
alignas(64) constexpr std::uint16_t kNothing[2 * kGradientLanes] = {};

struct Inside {
  std::int64_t begin, end;
};

// The columns of one row's pairs that have both pixels of the input inside.
Inside inside_pairs(const GradientImages& of) {
  const std::int64_t whole = of.out_width / 2;
  std::int64_t begin = 0;
  while (begin < whole && 2 * begin * of.stride_width + of.left < 0) ++begin;
  std::int64_t end = whole;
  while (end > begin && (2 * end - 1) * of.stride_width + of.left >= of.in_width) --end;
  return {begin, end};
}

// Output rows whose row of the input is inside.
Inside inside_rows(const GradientImages& of) {
  std::int64_t begin = 0;
  while (begin < of.out_height && begin * of.stride_height + of.top < 0) ++begin;
  std::int64_t end = of.out_height;
  while (end > begin && (end - 1) * of.stride_height + of.top >= of.in_height) --end;
  return {begin, end};
}

// The sums of kGradientRows output channels and kVectors vectors of input channels stay in registers over all pairs of all
// images: for each pair two loads and a shuffle per vector, and a broadcast for each of the rows' products.
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
  const Inside rows = inside_rows(of);
  const std::int64_t step = of.stride_width * of.in_channels;
  Sums<kVectors> total(sums, sums_pitch);
  const auto add_inside = [&](const std::uint16_t* pixel, const std::uint32_t* pair, std::int64_t count)
      __attribute__((always_inline)) {
    for (std::int64_t p = 0; p < count; ++p, pixel += 2 * step) total.add(pixel, pixel + step, pair + p * kGradientRows);
  };
  for (std::int64_t n = 0; n < of.images; ++n) {
    const std::uint16_t* image = x + n * of.in_height * of.in_width * of.in_channels;
    const std::uint32_t* image_pairs = pairs + n * of.out_height * pairs_a_row * kGradientRows;
    const auto pixel_at = [&](std::int64_t h, std::int64_t column) {
      return image + ((h * of.stride_height + of.top) * of.in_width + column) * of.in_channels;
    };
    // Rows that are consecutive in both are one long row.
    if (of.left == 0 && of.stride_width == 1 && of.stride_height == 1 && of.in_width == of.out_width && of.out_width % 2 == 0) {
      add_inside(pixel_at(rows.begin, 0), image_pairs + rows.begin * pairs_a_row * kGradientRows,
                 (rows.end - rows.begin) * pairs_a_row);
      continue;
    }
    for (std::int64_t h = rows.begin; h < rows.end; ++h) {
      const std::uint16_t* row = pixel_at(h, 0);
      const std::uint32_t* pair = image_pairs + h * pairs_a_row * kGradientRows;
      const auto at_edge = [&](std::int64_t p) __attribute__((always_inline)) {
        const std::int64_t column = 2 * p * of.stride_width + of.left;
        const std::int64_t next = column + of.stride_width;
        const bool has_first = column >= 0 && column < of.in_width;
        const bool has_second = 2 * p + 1 < of.out_width && next >= 0 && next < of.in_width;
        total.add(has_first ? row + column * of.in_channels : kNothing, has_second ? row + next * of.in_channels : kNothing,
                  pair + p * kGradientRows);
      };
      for (std::int64_t p = 0; p < inside.begin; ++p) at_edge(p);
      add_inside(row + (2 * inside.begin * of.stride_width + of.left) * of.in_channels, pair + inside.begin * kGradientRows,
                 inside.end - inside.begin);
      for (std::int64_t p = inside.end; p < pairs_a_row; ++p) at_edge(p);
    }
  }
  total.store(sums, sums_pitch);
}

// To nearest, ties to even, as bfloat_from_float() rounds; the processor's own conversion would lose the smallest numbers.
__m256i rounded(__m512 values) {
  const __m512i bits = _mm512_castps_si512(values);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i nearest = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
  const __mmask16 is_nan = _mm512_cmp_ps_mask(values, values, _CMP_UNORD_Q);
  const __m512i kept = _mm512_mask_or_epi32(nearest, is_nan, bits, _mm512_set1_epi32(0x400000));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(kept, 16));
}

__m512 widened(__m256i values) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(values), 16)); }

// Rows of eight words become columns.
void transpose(__m256i (&rows)[8]) {
  __m256i pairs[8], fours[8];
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_epi32(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_epi32(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    for (int half = 0; half < 2; ++half) {
      fours[i + 2 * half] = _mm256_unpacklo_epi64(pairs[i + half], pairs[i + half + 2]);
      fours[i + 2 * half + 1] = _mm256_unpackhi_epi64(pairs[i + half], pairs[i + half + 2]);
    }
  }
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x20);
    rows[i + 4] = _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x31);
  }
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

void place_paired_sums(const float* sums, std::int64_t sums_pitch, const std::uint16_t* before, std::uint16_t* to) {
  static_assert(kGradientRows == 8 && kGradientLanes == 16);
  __m256i pairs[kGradientRows];
  for (std::int64_t row = 0; row < kGradientRows; ++row) pairs[row] = rounded(_mm512_loadu_ps(sums + row * sums_pitch));
  transpose(pairs);
  for (std::int64_t pair = 0; pair < kGradientLanes / 2; ++pair) {
    __m256i result = pairs[pair];
    if (before != nullptr) {
      const __m256i sum = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(before + pair * kPairPitch));
      result = rounded(_mm512_add_ps(widened(sum), widened(result)));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + pair * kPairPitch), result);
  }
}

#else  // other processors, on which the kernel refuses and is never bound

bool is_compiled_for_bf16_pairs() { return false; }
void pair_pixels(const std::uint16_t*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::uint32_t*) {}
void add_pair_products(const GradientImages&, const std::uint32_t*, const std::uint16_t*, int, float*, std::int64_t) {}
void place_paired_sums(const float*, std::int64_t, const std::uint16_t*, std::uint16_t*) {}

#endif

}  // namespace snug::backends::cpu
