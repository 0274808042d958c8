// How many threads run the kernels.
#pragma once

#include <algorithm>
#include <thread>

namespace snug {

// As many as were asked for; 0 means as many as the machine has cores.
inline int thread_count(int asked) {
  return asked > 0 ? asked : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace snug
