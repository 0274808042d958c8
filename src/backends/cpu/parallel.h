// Splitting work over threads so that the result depends only on how many were asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <omp.h>

#include "ir/kernel.h"

namespace snug::backends::cpu {

struct Range {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
};

// Part `index` of `parts` nearly equal ones, each but the last a multiple of `grain`.
inline Range part_of(std::int64_t count, int index, int parts, std::int64_t grain = 1) {
  const std::int64_t grains = (count + grain - 1) / grain;
  const auto cut = [&](std::int64_t i) {
    const std::int64_t at = grains * i / parts * grain;
    return at < count ? at : count;
  };
  return {cut(index), cut(index + 1)};
}

// body(part, range) once for each of `threads` parts, on any thread.
template <typename Body>
void for_each_part(std::int64_t count, int threads, std::int64_t grain, const Body& body) {
#pragma omp parallel for schedule(static, 1) num_threads(threads)
  for (int part = 0; part < threads; ++part) body(part, part_of(count, part, threads, grain));
}

// loop(first, count) over `count` elements on all threads, or on one if there are few.
template <typename Loop>
void run_on_parts(std::int64_t count, int threads, const Loop& loop) {
  constexpr std::int64_t kGrain = 32;  // a cache line of the narrowest elements
  for_each_part(count, count < 4096 ? 1 : threads, kGrain, [&](int, Range part) { loop(part.begin, part.size()); });
}

// body(thread, item) once for each of `count` items that take different times, on whichever thread is free: the thread may only
// decide which scratch is used.
template <typename Body>
void for_each_item(std::int64_t count, int threads, const Body& body) {
#pragma omp parallel num_threads(threads)
  {
    const int thread = omp_get_thread_num();
#pragma omp for schedule(dynamic, 1) nowait
    for (std::int64_t item = 0; item < count; ++item) body(thread, item);
  }
}

// A bound kernel from a callable that holds all it needs.
template <typename Body>
std::unique_ptr<BoundKernel> make_bound(Body body) {
  class Bound : public BoundKernel {
   public:
    explicit Bound(Body callable) : body_(std::move(callable)) {}
    void run() override { body_(); }

   private:
    Body body_;
  };
  return std::make_unique<Bound>(std::move(body));
}

}  // namespace snug::backends::cpu
