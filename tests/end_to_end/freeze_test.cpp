// Freezing, from a model's definition to its weights after training.
#include <map>

#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "backends/reference/reference.h"
#include "end_to_end/golden.h"
#include "frontend/graph_builder.h"
#include "frontend/zoo.h"
#include "plan/compile.h"

namespace snug {

namespace {

constexpr std::int64_t kBatch = 6;

train::Session session_for(const Backend& backend, const std::vector<std::string>& frozen) {
  Program graph = frontend::build_zoo_model("wrn-10-1", {.batch = kBatch, .staged_as_bytes = false});
  frontend::freeze(graph, frozen);
  return {compile(graph, backend), backend, 3};
}

bool is_frozen(const std::string& name) { return name.starts_with("stem") || name.starts_with("group1"); }

// PyTorch's requires_grad=False: parameters stay, running statistics move. They have to be those of the model that trains them:
// forward is the same.
TEST(Freezing, KeepsParametersAndMovesRunningStatistics) {
  for (const Backend& backend : {backends::reference_backend(2), backends::cpu_backend(2)}) {
    train::Session all = session_for(backend, {});
    train::Session frozen = session_for(backend, {"stem", "group1"});
    std::map<std::string, std::vector<double>> before;
    for (const State& state : frozen.plan().program.states) {
      if (state.role == Role::parameter || state.role == Role::statistic) before[state.name] = frozen.read_state(state.name);
    }
    EXPECT_EQ(train_step<float>(frozen, 0), train_step<float>(all, 0));
    for (const auto& [name, values] : before) {
      const std::vector<double> after = frozen.read_state(name);
      const bool stays = is_frozen(name) && !name.ends_with("running_mean") && !name.ends_with("running_var");
      EXPECT_EQ(after == values, stays) << name;
      if (!stays) {
        EXPECT_EQ(after, all.read_state(name)) << name;
      }
    }
    // From the second step on the two models differ, and still nothing frozen moves.
    for (std::uint64_t step = 1; step < 3; ++step) train_step<float>(frozen, step);
    for (const auto& [name, values] : before) {
      if (is_frozen(name) && !name.ends_with("running_mean") && !name.ends_with("running_var")) {
        EXPECT_EQ(frozen.read_state(name), values) << name;
      }
    }
  }
}

// What lies above gets the very gradients that it gets when everything trains.
TEST(Freezing, ChangesNoBitOfTheOtherGradients) {
  const Backend backend = backends::cpu_backend(2);
  for (const std::vector<std::string>& prefixes :
       {std::vector<std::string>{"stem", "group1"}, {"group2.block1.conv1"}, {"group2.block1.bn", "group3.block1.conv2"}}) {
    train::Session all = session_for(backend, {});
    train::Session frozen = session_for(backend, prefixes);
    train_step<float>(all, 0);
    train_step<float>(frozen, 0);
    std::size_t compared = 0;
    for (const State& state : frozen.plan().program.states) {
      if (state.role != Role::optimizer) continue;  // after one step the momentum is the gradient, weight decay added
      EXPECT_EQ(frozen.read_state(state.name), all.read_state(state.name)) << state.name;
      ++compared;
    }
    EXPECT_GT(compared, 5U);
  }
}

}  // namespace

}  // namespace snug
