// The weight gradient in bf16 on processors that multiply pairs of such numbers, shared by dense
// and sparse weights. A thread computes some rows of the gradient (output channels) from all
// images: no sums over threads and no barriers, so that a preempted thread delays no other. Each
// sum is made by one thread in one order, for any number of threads.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "backends/cpu/onednn/onednn.h"
#include "backends/cpu/pairs/bf16_gradient.h"
#include "backends/cpu/parallel.h"
#include "ops/conv2d.h"

namespace snug::backends::cpu {

// How the work is divided: an item is kGradientRows output channels and some places of the window.
struct PairCut {
  ops::Conv2dGeometry g;
  std::int64_t taps = 0;              // places of the window in an item: all, those of a row, or one
  std::int64_t images = 0, rows = 0;  // of dy that are paired together: some images, or some rows of one

  PairCut(const ops::Conv2dGeometry& geometry, int threads);

  std::int64_t window() const { return g.kernel_height * g.kernel_width; }
  std::int64_t row_tiles() const { return g.out_channels / kGradientRows; }
  std::int64_t items() const { return row_tiles() * (window() / taps); }
  // Columns of the gradient that an item makes: the channels of one place after those of another.
  std::int64_t columns() const { return taps * g.in_channels; }
  // The share of the threads' time in which they have work.
  double busy(int threads) const;

  // A thread's pieces of the workspace.
  Bytes pairs_bytes() const;
  Bytes sums_bytes() const;
  Bytes workspace(int threads) const { return Bytes((pairs_bytes() + sums_bytes()).count() * threads); }
};

// Why these operands have no such gradient; nothing when they have.
std::optional<std::string> pair_objection(const Type& dy, const Type& x, const Type& gradient, const ops::Conv2dGeometry& g);

class PairGradient {
 public:
  PairGradient(const PairCut& cut, const std::byte* dy, const std::byte* x, std::byte* workspace, int threads)
      : cut_(cut),
        dy_(reinterpret_cast<const std::uint16_t*>(dy)),
        x_(reinterpret_cast<const std::uint16_t*>(x)),
        workspace_(workspace),
        threads_(threads) {}

  const PairCut& cut() const { return cut_; }

  // take(first row, first place of the window, sums) for every item, on all threads; sums: [kGradientRows][columns].
  template <typename Take>
  void make(const Take& take) const {
    for_each_part(cut_.items(), threads_, 1, [&](int thread, Range part) {
      std::byte* piece = workspace_ + thread * (cut_.pairs_bytes() + cut_.sums_bytes()).count();
      auto* pairs = reinterpret_cast<std::uint32_t*>(piece);
      auto* sums = reinterpret_cast<float*>(piece + cut_.pairs_bytes().count());
      for (std::int64_t item = part.begin; item < part.end; ++item) {
        const std::int64_t first_row = item % cut_.row_tiles() * kGradientRows;
        const std::int64_t first_tap = item / cut_.row_tiles() * cut_.taps;
        std::fill_n(sums, kGradientRows * cut_.columns(), 0.0F);
        add_all(first_row, first_tap, pairs, sums);
        take(first_row, first_tap, static_cast<const float*>(sums));
      }
    });
  }

 private:
  void add_all(std::int64_t first_row, std::int64_t first_tap, std::uint32_t* pairs, float* sums) const;

  PairCut cut_;
  const std::uint16_t *dy_, *x_;
  std::byte* workspace_;
  int threads_;
};

}  // namespace snug::backends::cpu
