#include "kernel_bench/machine.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

// Highway compiles this file once for each instruction set and picks one when the program runs.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel_bench/machine.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace snug::bench::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Enough sums that none waits for another: more than latency times units on any current core.
inline constexpr int kChains = 12;

// Returns the operations done; the sums go through `sink` so that they are not optimized away.
std::int64_t multiply_adds(std::int64_t rounds, float* sink) {
  const hn::ScalableTag<float> d;
  using Vector = hn::Vec<decltype(d)>;
  const Vector factor = hn::Set(d, 0.999F);
  const Vector term = hn::Set(d, 0.001F);
  // Every chain begins elsewhere: of equal ones a compiler makes one.
  const auto begin = [&](float at) { return hn::Set(d, *sink + at); };
  Vector s0 = begin(0), s1 = begin(1), s2 = begin(2), s3 = begin(3), s4 = begin(4), s5 = begin(5);
  Vector s6 = begin(6), s7 = begin(7), s8 = begin(8), s9 = begin(9), s10 = begin(10), s11 = begin(11);
  for (std::int64_t i = 0; i < rounds; ++i) {
    s0 = hn::MulAdd(s0, factor, term);
    s1 = hn::MulAdd(s1, factor, term);
    s2 = hn::MulAdd(s2, factor, term);
    s3 = hn::MulAdd(s3, factor, term);
    s4 = hn::MulAdd(s4, factor, term);
    s5 = hn::MulAdd(s5, factor, term);
    s6 = hn::MulAdd(s6, factor, term);
    s7 = hn::MulAdd(s7, factor, term);
    s8 = hn::MulAdd(s8, factor, term);
    s9 = hn::MulAdd(s9, factor, term);
    s10 = hn::MulAdd(s10, factor, term);
    s11 = hn::MulAdd(s11, factor, term);
  }
  const Vector low = hn::Add(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)), hn::Add(s4, s5));
  const Vector high = hn::Add(hn::Add(hn::Add(s6, s7), hn::Add(s8, s9)), hn::Add(s10, s11));
  *sink = hn::GetLane(hn::Add(low, high));
  return rounds * kChains * 2 * static_cast<std::int64_t>(hn::Lanes(d));
}

void triad(float* a, const float* b, const float* c, std::int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto scale = hn::Set(d, 3.0F);
  for (std::int64_t i = 0; i + lanes <= count; i += lanes)
    hn::StoreU(hn::MulAdd(hn::LoadU(d, c + i), scale, hn::LoadU(d, b + i)), d, a + i);
}

}  // namespace snug::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace snug::bench {

HWY_EXPORT(multiply_adds);
HWY_EXPORT(triad);

namespace {

constexpr int kRepeats = 10;
constexpr std::int64_t kRounds = 4'000'000;

#if defined(__x86_64__)
bool has_bf16_products() { return __builtin_cpu_supports("avx512bf16") != 0; }

// As multiply_adds; each instruction multiplies two pairs a lane.
[[gnu::target("avx512f,avx512bf16")]] std::int64_t bf16_products(std::int64_t rounds, float* sink) {
  constexpr int kChains = 12;
  const auto pair = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3C003C00));
  __m512 sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = _mm512_set1_ps(*sink + static_cast<float>(i));
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, pair, pair);
  }
  for (int i = 1; i < kChains; ++i) sums[0] = _mm512_add_ps(sums[0], sums[i]);
  *sink = _mm512_reduce_add_ps(sums[0]);
  return rounds * kChains * 4 * 16;
}
#else
bool has_bf16_products() { return false; }
std::int64_t bf16_products(std::int64_t /*rounds*/, float* /*sink*/) { return 0; }
#endif

// The best of several: the bound is what the machine can do when nobody disturbs it.
template <typename Body>
double best_seconds(const Body& body) {
  double best = 1e9;
  for (int i = 0; i < kRepeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    body();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

// `body(rounds, sink)` on every thread at once, in billions of the operations that it says it did a second.
template <typename Body>
double billions_a_second(int threads, const Body& body) {
  std::vector<float> sinks(static_cast<std::size_t>(threads) * 16);
  std::int64_t operations = 0;
  const double seconds = best_seconds([&] {
    std::int64_t sum = 0;
#pragma omp parallel for schedule(static, 1) num_threads(threads) reduction(+ : sum)
    for (int t = 0; t < threads; ++t) sum += body(kRounds, &sinks[static_cast<std::size_t>(t) * 16]);
    operations = sum;
  });
  return static_cast<double>(operations) / seconds * 1e-9;
}

}  // namespace

MachineBound measure_machine(int threads) {
  const double gflops = billions_a_second(
      threads, [](std::int64_t rounds, float* sink) { return HWY_DYNAMIC_DISPATCH(multiply_adds)(rounds, sink); });
  const double bf16_gflops = has_bf16_products() ? billions_a_second(threads, bf16_products) : 0;

  constexpr std::int64_t kFloats = std::int64_t{1} << 25U;  // 128 MiB an array
  std::vector<float> a(kFloats), b(kFloats, 1.0F), c(kFloats, 2.0F);
  const double memory_seconds = best_seconds([&] {
#pragma omp parallel for schedule(static, 1) num_threads(threads)
    for (int t = 0; t < threads; ++t) {
      const std::int64_t begin = kFloats * t / threads;
      HWY_DYNAMIC_DISPATCH(triad)(a.data() + begin, b.data() + begin, c.data() + begin, kFloats * (t + 1) / threads - begin);
    }
  });
  return {.gflops = gflops, .bf16_gflops = bf16_gflops, .gigabytes_a_second = 3.0 * 4.0 * kFloats / memory_seconds * 1e-9};
}

}  // namespace snug::bench
#endif
