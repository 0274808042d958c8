// The sum of a gradient's squares, for clipping.

// Highway compiles the loop once for each instruction set and picks one when the program runs.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/gradient_norm.cpp"
#include <cstdint>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace snug::backends::cpu::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Doubles from the start: the squares of floats neither overflow nor vanish there, and the rounding is far below a float's. Four
// sums hide the latency of the additions.
double squares_loop(const float* x, std::int64_t count) {
  constexpr int kSums = 4;
  const hn::ScalableTag<double> wide;
  const hn::Rebind<float, hn::ScalableTag<double>> narrow;
  using Vector = hn::Vec<hn::ScalableTag<double>>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(wide));
  Vector sums[kSums];
  for (Vector& sum : sums) sum = hn::Zero(wide);
  std::int64_t i = 0;
  for (; i + kSums * lanes <= count; i += kSums * lanes) {
    for (int s = 0; s < kSums; ++s) {
      const Vector value = hn::PromoteTo(wide, hn::LoadU(narrow, x + i + s * lanes));
      sums[s] = hn::MulAdd(value, value, sums[s]);
    }
  }
  HWY_ALIGN double spilled[hn::MaxLanes(hn::ScalableTag<double>())];
  hn::Store(hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3])), wide, spilled);
  double total = 0;
  for (std::int64_t lane = 0; lane < lanes; ++lane) total += spilled[lane];
  for (; i < count; ++i) total += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return total;
}

}  // namespace snug::backends::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include "backends/cpu/parallel.h"
#include "backends/cpu/simd.h"

namespace snug::backends::cpu {

namespace simd {
HWY_EXPORT(squares_loop);
}  // namespace simd

namespace {

constexpr std::int64_t kGrain = 16;  // a cache line of floats

std::int64_t stored_floats(const Type& type) { return type.bytes().count() / 4; }

// Small tensors are not worth waking a thread for.
int parts_of(const Type& type, int threads) { return stored_floats(type) < 4096 ? 1 : threads; }

bool is_dense_f32(const Type& type) { return type.dtype == DType::f32 && type.storage.kind == Storage::Kind::dense; }

double sum_of_part(const float* x, Range part) { return HWY_DYNAMIC_DISPATCH(simd::squares_loop)(x + part.begin, part.size()); }

// All that is stored, in memory order, whatever the layout: oneDNN keeps what pads its layouts at zero, and a zero adds nothing.
KernelMatch match_sum(const KernelQuery& query) {
  if (!is_dense_f32(query.inputs[0])) return Refuse{to_string(query.inputs[0]) + " is not dense f32"};
  const int parts = parts_of(query.inputs[0], query.threads);
  return Accept{.workspace = Bytes(parts == 1 ? 0 : parts * static_cast<std::int64_t>(sizeof(double)))};
}

std::unique_ptr<BoundKernel> bind_sum(const KernelArguments& arguments) {
  const Type& type = arguments.inputs[0].type;
  const auto* before = arguments.inputs.size() == 2 ? reinterpret_cast<const double*>(arguments.inputs[1].data) : nullptr;
  return make_bound([x = floats(arguments.inputs[0]), before, sum = reinterpret_cast<double*>(arguments.outputs[0].data),
                     partial = reinterpret_cast<double*>(arguments.workspace.data()), count = stored_floats(type),
                     parts = parts_of(type, arguments.threads)] {
    double total = 0;
    if (parts == 1) {
      total = sum_of_part(x, {0, count});
    } else {
      for_each_part(count, parts, kGrain, [&](int part, Range range) { partial[part] = sum_of_part(x, range); });
      for (int part = 0; part < parts; ++part) total += partial[part];
    }
    *sum = before == nullptr ? total : *before + total;
  });
}

}  // namespace

constinit const KernelDef simd_sum_of_squares{
    .name = "simd_sum_of_squares", .op = "sum_of_squares", .match = match_sum, .bind = bind_sum};

}  // namespace snug::backends::cpu
#endif
