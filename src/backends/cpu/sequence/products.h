// Matrix products by oneDNN that are computed by one thread each, many at the same time: how a large product is divided into
// these does not depend on the number of threads, so the bits do not either, and what a thread has made is still in its cache
// when it reads it.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/onednn/onednn.h"

namespace snug::backends::cpu {

// c = a b, or c += a b: a [rows, depth], b [depth, columns], both f32 or bf16; c [rows, columns] in floats. Steps are from an
// element to the next one of its row or column, in elements.
struct ThreadProduct {
  DType dtype;
  std::int64_t rows, columns, depth;
  std::int64_t a_down, a_across, b_down, b_across, c_down;
  bool adds;

  bool operator==(const ThreadProduct&) const = default;
};

class ThreadProducts {
 public:
  // Says what will be computed; the same product twice is one.
  void plan(const ThreadProduct& product);

  Bytes scratchpad() const { return scratchpad_; }  // of one thread
  bool is_reference() const { return is_reference_; }

  // Makes all that were planned, for threads whose scratchpads lie side by side.
  void bind(int threads, std::byte* scratchpads);

  // On the calling thread, which is number `thread`. What fails is told by check().
  void run(const ThreadProduct& product, int thread, const void* a, const void* b, float* c) const;
  void check() const;

 private:
  struct OfThread {
    dnnl::memory a, b, c, scratchpad;
  };
  struct Made {
    ThreadProduct product;
    dnnl::matmul::primitive_desc description;
    dnnl::matmul primitive;
    std::vector<OfThread> of_thread;
  };

  std::vector<Made> made_;
  Bytes scratchpad_;
  bool is_reference_ = false;
  mutable std::vector<dnnl_status_t> status_;  // of each thread
};

}  // namespace snug::backends::cpu
