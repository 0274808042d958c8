// Between the second step and the last, nothing of Snug's own asks the heap for anything.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "allocation/counting_heap.h"
#include "backends/cpu/cpu.h"
#include "frontend/zoo.h"
#include "plan/compile.h"
#include "support/labeled.h"
#include "train/session.h"

namespace snug {

namespace {

using allocation::heap_use;
using allocation::HeapUse;

TEST(CountingHeap, SeesThisProgramsOwnCalls) {
  if (!allocation::heap_is_counted()) GTEST_SKIP() << "the sanitizer has a heap of its own";
  const HeapUse before = heap_use();
  auto* volatile kept = new std::vector<int>(1000);
  const HeapUse after = heap_use();
  EXPECT_GE(after.own_calls - before.own_calls, 2);
  EXPECT_GE(after.live_bytes - before.live_bytes, 4000);
  delete kept;
  EXPECT_EQ(heap_use().live_bytes, before.live_bytes);
}

class SteadyState : public testing::TestWithParam<const char*> {};

TEST_P(SteadyState, StepsAllocateNothingOfOurOwnAndLibrariesDoNotGrow) {
  if (!allocation::heap_is_counted()) GTEST_SKIP() << "the sanitizer has a heap of its own";
  const Backend backend = backends::cpu_backend(2);
  constexpr std::int64_t kBatch = 6;
  train::Session session(
      compile(frontend::build_zoo_model(GetParam(), {.batch = 4, .image_size = 32}), backend, {.batch = kBatch}), backend, 1);
  const std::vector<std::byte> images(kBatch * 32 * 32 * 3, std::byte{100});
  const std::vector<std::int32_t> labels(kBatch, 3);
  session.set_learning_rate(1e-3);
  session.train_step(support::Labeled(images, labels));
  session.train_step(support::Labeled(images, labels));

  const HeapUse before = heap_use();
  session.train_step(support::Labeled(images, labels));
  const HeapUse one = heap_use();
  for (int step = 0; step < 4; ++step) session.train_step(support::Labeled(images, labels));
  const HeapUse after = heap_use();
  EXPECT_EQ(after.own_calls, before.own_calls);
  EXPECT_EQ(after.live_bytes, before.live_bytes);
  EXPECT_EQ(after.library_calls - one.library_calls, 4 * (one.library_calls - before.library_calls));
}

std::string name_of_model(const testing::TestParamInfo<const char*>& model) {
  std::string name = model.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(EveryKindOfModel, SteadyState, testing::Values("wrn-10-1", "small-cnn", "resnet-18", "vgg-16"),
                         name_of_model);

}  // namespace

}  // namespace snug
