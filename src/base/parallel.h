// Independent pieces of work on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

namespace snug {

// Calls work(0) to work(count - 1), on at most `threads` threads, the caller's included, and returns when all are done. An
// exception of one of them (that with the lowest number) is thrown here, when no other still runs.
template <typename Work>
void run_in_threads(std::size_t count, int threads, const Work& work) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::size_t failed = count;
  std::exception_ptr failure;
  const auto take_turns = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::scoped_lock lock(mutex);
        if (i < failed) {
          failed = i;
          failure = std::current_exception();
        }
      }
    }
  };
  std::vector<std::jthread> helpers;
  const std::size_t wanted = std::min(count, static_cast<std::size_t>(std::max(threads, 1)));
  for (std::size_t i = 1; i < wanted; ++i) helpers.emplace_back(take_turns);
  take_turns();
  helpers.clear();
  if (failure) std::rethrow_exception(failure);
}

// Runs the work on a separate thread while the caller waits; returns or throws what it does. Such a thread has its own heap: for
// work that takes much memory and leaves little, which would otherwise be scattered over the caller's heap and hold its pages.
template <typename Work>
auto run_apart(const Work& work) {
  return std::async(std::launch::async, std::cref(work)).get();
}

}  // namespace snug
