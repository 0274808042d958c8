// Several kernels that run one after the other as one.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "backends/cuda/call.h"

namespace snug::backends::cuda {

class KernelChain final : public BoundKernel {
 public:
  void add(std::unique_ptr<BoundKernel> kernel) { kernels_.push_back(std::move(kernel)); }
  void run() override {
    for (const auto& kernel : kernels_) kernel->run();
  }

 private:
  std::vector<std::unique_ptr<BoundKernel>> kernels_;
};

}  // namespace snug::backends::cuda
