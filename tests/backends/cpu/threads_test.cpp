// A kernel is made for the threads that it is asked to run with, whatever OpenMP's own setting is at the time.
#include <omp.h>

#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "backends/omp_threads.h"
#include "ops/ops.h"

namespace snug::backends {
namespace {

using Integers = std::vector<std::int64_t>;

Bytes workspace_of_weight_gradient(int threads) {
  const Backend backend = cpu_backend(threads);
  const Attributes attributes{{"stride", Integers{1, 1}},
                              {"padding", Integers{1, 1}},
                              {"dilation", Integers{1, 1}},
                              {"groups", std::int64_t{1}},
                              {"kernel", Integers{3, 3}}};
  const Type image{.dtype = DType::f32, .shape = {16, 64, 16, 16}, .layout = Layout::channels_last()};
  const std::vector<Type> inputs{image, image};
  const std::vector<Type> outputs = infer_types(ops::conv2d_grad_weight, {inputs, attributes});
  Accept accept;
  backend.choose(
      {.op = ops::conv2d_grad_weight, .attributes = attributes, .inputs = inputs, .outputs = outputs, .threads = threads},
      accept);
  return accept.workspace;
}

TEST(CpuThreads, WorkspaceFollowsTheThreadsAskedForAndNothingElse) {
  for (const int asked : {1, 2, 4}) {
    const Bytes expected = [&] {
      const OmpThreads scope(asked);
      return workspace_of_weight_gradient(asked);
    }();
    for (const int around : {1, 2, 3, 8}) {
      const OmpThreads scope(around);
      EXPECT_EQ(workspace_of_weight_gradient(asked), expected) << asked << " threads asked for, " << around << " set outside";
      EXPECT_EQ(omp_get_max_threads(), around);
    }
  }
  EXPECT_LT(workspace_of_weight_gradient(1), workspace_of_weight_gradient(4));
}

}  // namespace
}  // namespace snug::backends
