// What the machine could do at best, measured here and now: the bounds that kernels are held against.
#pragma once

namespace snug::bench {

struct MachineBound {
  double gflops = 0;              // multiply-adds in registers on all threads, counted as two operations each
  double bf16_gflops = 0;         // the same of pairs of bf16 added to floats; 0 where the processor cannot
  double gigabytes_a_second = 0;  // a = b + s c over arrays far larger than the caches; three streams counted
};

MachineBound measure_machine(int threads);

}  // namespace snug::bench
