// Sets how many threads OpenMP gives to libraries' loops; the destructor restores the caller's setting. A library asks when a
// primitive is made (its scratch and the order of its sums depend on it) and again when it runs.
#pragma once

#include <omp.h>

namespace snug::backends {

class OmpThreads {
 public:
  explicit OmpThreads(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(threads); }
  ~OmpThreads() { omp_set_num_threads(before_); }
  OmpThreads(const OmpThreads&) = delete;
  OmpThreads& operator=(const OmpThreads&) = delete;

 private:
  int before_;
};

}  // namespace snug::backends
