#include "backends/cpu/sparse/simd.h"

// Highway compiles this file once for each instruction set and picks one when the program runs.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/sparse/simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace snug::backends::cpu::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Vector = hn::Vec<Floats>;

inline std::int64_t lanes() { return static_cast<std::int64_t>(hn::Lanes(Floats())); }

constexpr int kMostVectors = 8;  // sums that stay in registers

template <int kVectors>
void product_chunk(const TileRow& row, const float* tile, float bias, float* out) {
  const Floats d;
  Vector sums[kVectors];
  for (Vector& sum : sums) sum = hn::Set(d, bias);
  for (std::int64_t k = 0; k < row.count; ++k) {
    const Vector weight = hn::Set(d, row.weights[k]);
    const float* from = tile + row.at[k];
    for (int v = 0; v < kVectors; ++v) sums[v] = hn::MulAdd(weight, hn::LoadU(d, from + v * lanes()), sums[v]);
  }
  for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[v], d, out + v * lanes());
}

template <int kVectors>
void scatter_chunk(const TileRow& row, const float* dy, float* tile) {
  const Floats d;
  Vector gradient[kVectors];
  for (int v = 0; v < kVectors; ++v) gradient[v] = hn::LoadU(d, dy + v * lanes());
  for (std::int64_t k = 0; k < row.count; ++k) {
    const Vector weight = hn::Set(d, row.weights[k]);
    float* to = tile + row.at[k];
    for (int v = 0; v < kVectors; ++v)
      hn::StoreU(hn::MulAdd(weight, gradient[v], hn::LoadU(d, to + v * lanes())), d, to + v * lanes());
  }
}

template <int kVectors>
void dots_chunk(const TileRow& row, const float* dy, const float* tile, float* sums) {
  const Floats d;
  Vector gradient[kVectors];
  for (int v = 0; v < kVectors; ++v) gradient[v] = hn::LoadU(d, dy + v * lanes());
  for (std::int64_t k = 0; k < row.count; ++k) {
    const float* from = tile + row.at[k];
    Vector sum = hn::Mul(gradient[0], hn::LoadU(d, from));
    for (int v = 1; v < kVectors; ++v) sum = hn::MulAdd(gradient[v], hn::LoadU(d, from + v * lanes()), sum);
    sums[k] += hn::GetLane(hn::SumOfLanes(d, sum));
  }
}

// Cuts a length into chunks of at most kMostVectors, as even as possible: body(vectors, first element).
template <typename Body>
void for_chunks(std::int64_t length, const Body& body) {
  const std::int64_t vectors = (length + lanes() - 1) / lanes();
  const std::int64_t chunks = (vectors + kMostVectors - 1) / kMostVectors;
  for (std::int64_t c = 0; c < chunks; ++c) {
    const std::int64_t begin = vectors * c / chunks;
    body(static_cast<int>(vectors * (c + 1) / chunks - begin), begin * lanes());
  }
}

// body.template operator()<N>() for N = vectors.
template <typename Body>
void with_vectors(int vectors, const Body& body) {
  switch (vectors) {
    case 1:
      return body.template operator()<1>();
    case 2:
      return body.template operator()<2>();
    case 3:
      return body.template operator()<3>();
    case 4:
      return body.template operator()<4>();
    case 5:
      return body.template operator()<5>();
    case 6:
      return body.template operator()<6>();
    case 7:
      return body.template operator()<7>();
    default:
      return body.template operator()<kMostVectors>();
  }
}

void product_loop(const TileRow& row, const float* tile, float bias, float* out, std::int64_t length) {
  for_chunks(length, [&](int vectors, std::int64_t first) {
    with_vectors(vectors, [&]<int N>() { product_chunk<N>(row, tile + first, bias, out + first); });
  });
}

void scatter_loop(const TileRow& row, const float* dy, float* tile, std::int64_t length) {
  for_chunks(length, [&](int vectors, std::int64_t first) {
    with_vectors(vectors, [&]<int N>() { scatter_chunk<N>(row, dy + first, tile + first); });
  });
}

void dots_loop(const TileRow& row, const float* dy, const float* tile, float* sums, std::int64_t length) {
  for_chunks(length, [&](int vectors, std::int64_t first) {
    with_vectors(vectors, [&]<int N>() { dots_chunk<N>(row, dy + first, tile + first, sums); });
  });
}

}  // namespace snug::backends::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace snug::backends::cpu::simd {

HWY_EXPORT(product_loop);
HWY_EXPORT(scatter_loop);
HWY_EXPORT(dots_loop);

void tile_product(const TileRow& row, const float* tile, float bias, float* out, std::int64_t length) {
  HWY_DYNAMIC_DISPATCH(product_loop)(row, tile, bias, out, length);
}

void tile_scatter(const TileRow& row, const float* dy, float* tile, std::int64_t length) {
  HWY_DYNAMIC_DISPATCH(scatter_loop)(row, dy, tile, length);
}

void tile_dots(const TileRow& row, const float* dy, const float* tile, float* sums, std::int64_t length) {
  HWY_DYNAMIC_DISPATCH(dots_loop)(row, dy, tile, sums, length);
}

}  // namespace snug::backends::cpu::simd
#endif
