// A product and then the bias, where the library does not add it: its result is rounded, then the sum again.
#pragma once

#include <memory>
#include <utility>

#include "backends/cuda/call.h"
#include "backends/cuda/norm/row_shape.h"
#include "backends/cuda/norm/sums.h"

namespace snug::backends::cuda {

// Adds an input of the call, the bias, to every row of its output.
template <typename T>
class WithBias final : public BoundKernel {
 public:
  WithBias(std::unique_ptr<BoundKernel> product, const Call& call, std::size_t bias = 2)
      : product_(std::move(product)),
        stream_(call.device().stream()),
        y_(call.out<T>(0)),
        bias_(call.in<T>(bias)),
        shape_(rows_of(call.output_shape(0))),
        tiling_(ColumnTiling::of(shape_.channels, sizeof(T))) {}
  void run() override {
    product_->run();
    launch::add_bias<T>(stream_, y_, bias_, shape_, tiling_);
  }

 private:
  std::unique_ptr<BoundKernel> product_;
  cudaStream_t stream_;
  T* y_;
  const T* bias_;
  RowShape shape_;
  ColumnTiling tiling_;
};

}  // namespace snug::backends::cuda
