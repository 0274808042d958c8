// How many threads run the kernels.
#pragma once

#include <algorithm>
#include <thread>

namespace snug {

// The number that was asked for; 0 means one per core of the machine.
inline int thread_count(int asked) {
  return asked > 0 ? asked : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace snug
