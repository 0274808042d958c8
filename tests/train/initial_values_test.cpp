#include "train/initial_values.h"

#include <gtest/gtest.h>

#include "frontend/zoo.h"
#include "small_session.h"
#include "support/files.h"
#include "train/snapshot.h"
#include "train/weights.h"

namespace snug::train {

using support::TemporaryFolder;

namespace {

std::vector<StateId> all_of(const Program& program, std::initializer_list<Role> roles) {
  std::vector<StateId> ids;
  for (std::size_t i = 0; i < program.states.size(); ++i) {
    if (std::find(roles.begin(), roles.end(), program.states[i].role) != roles.end()) ids.emplace_back(i);
  }
  return ids;
}

// The ops of `init` that are left, each once, in order of their names.
std::vector<std::string> ops_left(const Program& program, std::span<const StateId> given) {
  const Section& init = *program.find_section(SectionKind::init);
  std::vector<std::string> names;
  for (const std::size_t node : init_nodes_without(program, given)) names.emplace_back(init.nodes[node].op->name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

bool is_zero(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return v == 0; });
}

TEST(InitialValues, WithNothingGivenEveryNodeRuns) {
  const Program program = small_plan(backends::cpu_backend(1)).program;
  const std::vector<std::size_t> nodes = init_nodes_without(program, {});
  ASSERT_EQ(nodes.size(), program.find_section(SectionKind::init)->nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) EXPECT_EQ(nodes[i], i);
}

TEST(InitialValues, NothingIsDrawnThatAFileGives) {
  for (const bool sparse : {false, true}) {
    SmallModel model;
    if (sparse) model.nonzero = 0.5;
    const Program program = small_plan(backends::cpu_backend(1), model).program;
    const auto drawn = all_of(program, {Role::parameter, Role::statistic});
    EXPECT_EQ(ops_left(program, drawn), (std::vector<std::string>{"fill"})) << sparse;
    const auto saved = all_of(program, {Role::parameter, Role::statistic, Role::optimizer});
    EXPECT_LT(init_nodes_without(program, saved).size(), init_nodes_without(program, drawn).size());
  }
}

// The values of sparse weights are drawn at the places of the pattern.
TEST(InitialValues, WhatANodeThatRunsReadsIsMade) {
  const Program program = small_plan(backends::cpu_backend(1), {.nonzero = 0.5}).program;
  const std::vector<StateId> pattern{program.find_state("sparse.columns"), program.find_state("sparse.rows")};
  EXPECT_EQ(init_nodes_without(program, pattern).size(), program.find_section(SectionKind::init)->nodes.size());
}

TEST(InitialValues, CopiesOfGivenWeightsAreLeftToTheSectionThatDerivesThem) {
  const Backend backend = backends::cpu_backend(2);
  CompileOptions options{.batch = 4};
  options.methods.prepack_weights = true;
  const Plan plan = compile(frontend::build_zoo_model("wrn-10-1", {.batch = 4, .image_size = 32}), backend, options);
  ASSERT_NE(plan.program.find_section(SectionKind::derive), nullptr);
  const auto given = all_of(plan.program, {Role::parameter, Role::statistic});
  EXPECT_EQ(ops_left(plan.program, given), (std::vector<std::string>{"fill"}));

  const TemporaryFolder folder;
  Session drawn(plan, backend, 3);
  export_weights(folder / "w", drawn);
  Session loaded(plan, backend, 5, Start::from_file);
  import_weights(folder / "w", loaded);
  Session partly(plan, backend, 3, Start::from_file);
  partly.initialize_all_but({});
  for (const State& state : plan.program.states) {
    if (!state.name.ends_with(".packed")) continue;
    EXPECT_EQ(loaded.read_state(state.name), drawn.read_state(state.name)) << state.name;
    EXPECT_EQ(partly.read_state(state.name), drawn.read_state(state.name)) << state.name;
  }
}

TEST(InitialValues, SessionThatBeginsWithAFileDrawsOnlyTheRestWithTheSameBits) {
  const Backend backend = backends::cpu_backend(1);
  Session drawn(small_plan(backend), backend, 7);
  Session session(small_plan(backend), backend, 7, Start::from_file);
  for (const char* name : {"conv1.weight", "conv2.weight", "fc.weight"}) EXPECT_TRUE(is_zero(session.read_state(name))) << name;
  const std::vector<StateId> given{session.plan().program.find_state("conv2.weight")};
  session.initialize_all_but(given);
  EXPECT_TRUE(is_zero(session.read_state("conv2.weight")));
  for (const State& state : session.plan().program.states) {
    if (state.name == "conv2.weight" || (state.role != Role::parameter && state.role != Role::statistic)) continue;
    EXPECT_EQ(session.read_state(state.name), drawn.read_state(state.name)) << state.name;
  }
  const std::vector<double> weights = drawn.read_state("conv2.weight");
  session.write_state("conv2.weight", weights);
  EXPECT_EQ(all_bytes(session), all_bytes(drawn));
  // Once is enough: what has been trained since is not drawn again.
  small_step(session);
  small_step(drawn);
  session.initialize_all_but({});
  EXPECT_EQ(all_bytes(session), all_bytes(drawn));
}

TEST(InitialValues, SessionWithoutItsFileDoesNotRun) {
  const Backend backend = backends::cpu_backend(1);
  Session session(small_plan(backend), backend, 7, Start::from_file);
  EXPECT_THROW(small_step(session), InternalError);
}

TEST(InitialValues, ResumedSessionThatDrewNothingHasTheBitsOfOneThatDid) {
  for (const bool sparse : {false, true}) {
    const TemporaryFolder folder;
    SmallModel model;
    if (sparse) model.nonzero = 0.5;
    Session session = small_session(7, model);
    for (int i = 0; i < 2; ++i) small_step(session);
    save_snapshot(folder / "a", session, {});
    const Backend backend = backends::cpu_backend(1);
    Session resumed(small_plan(backend, model), backend, 99, Start::from_file);
    load_snapshot(folder / "a", resumed);
    EXPECT_EQ(all_bytes(resumed), all_bytes(session));
    for (int i = 0; i < 2; ++i) EXPECT_EQ(small_step(resumed), small_step(session));
    EXPECT_EQ(all_bytes(resumed), all_bytes(session));
  }
}

}  // namespace

}  // namespace snug::train
