#include "base/parallel.h"

#include <numeric>
#include <stdexcept>

#include <gtest/gtest.h>

namespace snug {
namespace {

TEST(RunInThreads, EveryPieceIsDoneOnce) {
  for (const int threads : {0, 1, 2, 7}) {
    for (const std::size_t count : {0U, 1U, 3U, 100U}) {
      std::vector<std::atomic<int>> done(count);
      run_in_threads(count, threads, [&](std::size_t i) { ++done[i]; });
      for (const std::atomic<int>& times : done) EXPECT_EQ(times, 1);
    }
  }
}

TEST(RunInThreads, TheFirstFailureIsThrownWhenAllAreDone) {
  std::atomic<int> done = 0;
  const auto work = [&](std::size_t i) {
    ++done;
    if (i == 3 || i == 8) throw std::runtime_error(std::to_string(i));
  };
  try {
    run_in_threads(20, 3, work);
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "3");
  }
  EXPECT_EQ(done, 20);
}

TEST(RunApart, GivesWhatTheWorkReturnsOrThrowsOnAnotherThread) {
  EXPECT_NE(run_apart([] { return std::this_thread::get_id(); }), std::this_thread::get_id());
  EXPECT_THROW(run_apart([]() -> int { throw std::runtime_error("no"); }), std::runtime_error);
}

}  // namespace
}  // namespace snug
