// The runner: it times, verifies, dumps, and can turn a pass off.
#include <gtest/gtest.h>

#include "base/error.h"
#include "before_after.h"
#include "passes/pass.h"
#include "support/messages.h"

namespace snug::testing {
namespace {

Program rename_first(Program program, const PassContext& /*context*/) {
  program.sections[0].values[program.sections[0].nodes[0].outputs[0].index()].name = "renamed";
  return program;
}

Program swap_nodes(Program program, const PassContext& /*context*/) {
  std::swap(program.sections[0].nodes[0], program.sections[0].nodes[1]);
  return program;
}

const std::vector<Pass> kPasses{{.name = "rename", .run = rename_first}, {.name = "swap", .run = swap_nodes}};
const std::vector<Pass> kRenameOnly{{.name = "rename", .always_because = "nothing runs without it", .run = rename_first}};

const std::string kNodes = "%a = relu(x@0) : f32[2x4] activation ; forward a\n%b = relu(%a) : f32[2x4] activation ; forward b\n";
const std::string kRenamed =
    "%renamed = relu(x@0) : f32[2x4] activation ; forward a\n%b = relu(%renamed) : f32[2x4] activation ; forward b\n";

struct Ran {
  std::string text;  // of the program, or the error
  std::vector<PassTiming> timings;
  std::vector<std::string> dumps;
};

Ran run(const std::vector<Pass>& passes, PassOptions options = {}) {
  const AcceptingBackend backend;
  Ran ran;
  options.dump = [&](std::string_view pass, const std::string& text) { ran.dumps.push_back(std::string(pass) + "\n" + text); };
  try {
    check_passes(passes, options, {});
    ran.text = nodes_of(run_passes(program_of(kNodes), passes, {.backend = backend}, options, ran.timings));
  } catch (const UserError& error) {
    ran.text = std::string("UserError: ") + error.what();
  } catch (const InternalError& error) {
    ran.text = std::string("InternalError: ") + error.what();
  }
  return ran;
}

TEST(RunPasses, RunsThemInOrderAndTimesEach) {
  const Ran ran = run(kRenameOnly);
  EXPECT_EQ(ran.text, kRenamed);
  ASSERT_EQ(ran.timings.size(), 1U);
  EXPECT_EQ(ran.timings[0].name, "rename");
  EXPECT_GE(ran.timings[0].seconds, 0);
}

TEST(RunPasses, APassThatBreaksTheProgramIsCaughtAndNamed) {
  EXPECT_TRUE(support::mentions(run(kPasses).text, {"InternalError", "'test'", "pass swap", "%renamed", "%b", "f32[2x4]"}));
}

TEST(RunPasses, ADisabledPassDoesNotRun) {
  const Ran ran = run(kPasses, {.disabled = {"swap"}});
  EXPECT_EQ(ran.text, kRenamed);
  EXPECT_EQ(ran.timings.size(), 1U);
}

TEST(RunPasses, DumpsTheProgramAfterThePassThatIsNamed) {
  const Ran ran = run(kRenameOnly, {.dump_after = "rename"});
  ASSERT_EQ(ran.dumps.size(), 1U);
  EXPECT_EQ(ran.dumps[0], "rename\n" + print(parse_program(std::string(kStates) + kRenamed, ops::find)));
  EXPECT_TRUE(run(kRenameOnly).dumps.empty());
}

TEST(RunPasses, DumpsWhereADisabledPassWouldHaveRun) {
  const Ran ran = run(kPasses, {.disabled = {"swap", "rename"}, .dump_after = "swap"});
  ASSERT_EQ(ran.dumps.size(), 1U);
  EXPECT_NE(ran.dumps[0].find("%a = relu(x@0)"), std::string::npos);
}

TEST(RunPasses, RefusesNamesThatNoPassHas) {
  EXPECT_TRUE(support::mentions(run(kPasses, {.disabled = {"melt"}}).text, {"UserError", "no pass 'melt'", "rename, swap"}));
  EXPECT_TRUE(support::mentions(run(kPasses, {.dump_after = "melt"}).text, {"UserError", "no pass 'melt'", "rename, swap"}));
}

TEST(RunPasses, RefusesToTurnOffWhatIsRequired) {
  EXPECT_TRUE(support::mentions(run(kRenameOnly, {.disabled = {"rename"}}).text, {"UserError", "'rename'", "turned off"}));
}

TEST(Pipeline, MakesAProgramOfTheModelThenRewritesIt) {
  std::string names;
  for (const Pass& pass : pipeline()) names += std::string(pass.name) + " ";
  for (const Pass& pass : memory_passes()) {
    EXPECT_TRUE(pass.exactness == Exactness::exact || pass.is_asked_for != nullptr)
        << pass.name << " changes bits, and nobody asked for it";
    EXPECT_EQ(pass.always_because.empty(), pass.name != "select_kernels") << pass.name;
  }
  EXPECT_EQ(names,
            "narrow fuse sparsify choose_layouts choose_recipes differentiate add_update "
            "eliminate_dead_nodes checkpoint compress_activations offload_activations drop_gradients fuse_update "
            "accumulate_in_place prepack_weights select_kernels share_bytes ");
}

}  // namespace
}  // namespace snug::testing
