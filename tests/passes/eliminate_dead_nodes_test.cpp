#include "passes/eliminate_dead_nodes.h"

#include <gtest/gtest.h>

#include "before_after.h"

namespace snug::testing {
namespace {

TEST(EliminateDeadNodes, DropsWhatNothingReads) {
  EXPECT_EQ(after(eliminate_dead_nodes,
                  "%plain = image_input(images@0, scalars@0) {augment=0, bits=32, mean=[1.0,1.0,1.0], padding=4, "
                  "std=[2.0,2.0,2.0]} : f32[2x3x8x8] "
                  "activation ; forward plain\n"
                  "%input = image_input(images@0, scalars@0) {augment=1, bits=32, mean=[1.0,1.0,1.0], padding=4, "
                  "std=[2.0,2.0,2.0]} : f32[2x3x8x8] "
                  "activation ; forward input\n"
                  "%g = global_avg_pool(%input) : f32[2x3] activation ; forward pool\n"
                  "%s = sum_to_channels(%g) : f32[3] activation ; forward s\n"
                  "%y = relu(x@0) : f32[2x4] activation ; forward y\n"
                  "b@1 = sum_to_channels(%y) : state ; update b\n"),
            "%y = relu(x@0) : f32[2x4] activation ; forward y\n"
            "b@1 = sum_to_channels(%y) : state ; update b\n");
}

TEST(EliminateDeadNodes, DropsAWholeDeadChain) {
  EXPECT_EQ(after(eliminate_dead_nodes,
                  "%a = relu(x@0) : f32[2x4] activation ; forward a\n"
                  "%b = relu(%a) : f32[2x4] activation ; forward b\n"
                  "%c = relu(%b) : f32[2x4] activation ; forward c\n"),
            "");
}

TEST(EliminateDeadNodes, KeepsWhatWritesAState) {
  const std::string nodes = "w@1 = fill(w@0) {value=1.0} : state ; init w\n";
  EXPECT_EQ(after(eliminate_dead_nodes, nodes), nodes);
}

TEST(EliminateDeadNodes, KeepsANodeOfWhichOneOutputIsRead) {
  const std::string nodes =
      "%m, %v = batch_norm_statistics(x@0, scalars@0) {group_size=2} : f32[1x4] activation, f32[1x4] activation ; forward n\n"
      "b@1 = sum_to_channels(%v) : state ; update b\n";
  EXPECT_EQ(after(eliminate_dead_nodes, nodes), nodes);
}

}  // namespace
}  // namespace snug::testing
