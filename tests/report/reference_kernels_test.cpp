#include "report/reference_kernels.h"

#include <gtest/gtest.h>

#include "report/json.h"
#include "report/kernels.h"
#include "report/text.h"
#include "tiny_plan.h"

namespace snug::report {
namespace {

KernelMatch is_fast(const KernelQuery& /*query*/) { return Accept{}; }
KernelMatch is_plain(const KernelQuery& /*query*/) { return Accept{.is_reference = true}; }
// A library that has loops of its own for 8 features alone.
KernelMatch is_plain_for_others(const KernelQuery& query) { return Accept{.is_reference = query.inputs[0].shape[1] != 8}; }

constexpr KernelDef kFastLinear{.name = "fast_linear", .op = "linear", .match = is_fast};
constexpr KernelDef kLibraryLinear{.name = "fast_linear", .op = "linear", .match = is_plain_for_others};
constexpr KernelDef kPlainLinear{.name = "plain_linear", .op = "linear", .match = is_plain};
constexpr KernelDef kPlainGradient{.name = "plain_grad_weight", .op = "linear_grad_weight", .match = is_plain};
constexpr KernelDef kPlainSum{.name = "plain_add", .op = "add", .match = is_plain};

Backend backend_of(std::vector<const KernelDef*> kernels) { return {.name = "test", .kernels = std::move(kernels)}; }

Plan plan_on(const std::string& linear) { return plan_of(replaced(tiny_text(), "plain_linear", linear)); }

TEST(ReferenceKernels, NodesThatMatterAreNamedWithTheirShareOfTheWork) {
  const Backend backend = backend_of({&kFastLinear, &kPlainLinear, &kPlainGradient});
  const std::vector<ReferenceNode> nodes = reference_kernels(tiny_plan().program, backend);
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0].op, "linear");
  EXPECT_EQ(nodes[0].layer, "head.fc");
  EXPECT_EQ(nodes[0].kernel, "plain_linear");
  EXPECT_EQ(nodes[0].section, SectionKind::micro);
  EXPECT_GT(nodes[0].share, kShareThatMatters);
  EXPECT_LT(nodes[0].share + nodes[1].share, 1);
  EXPECT_EQ(nodes[1].op, "linear_grad_weight");
}

TEST(ReferenceKernels, FastKernelsAreNotNamed) {
  EXPECT_TRUE(reference_kernels(plan_on("fast_linear").program, backend_of({&kFastLinear})).empty());
  EXPECT_TRUE(reference_kernels(tiny_plan().program, backend_of({})).empty()) << "kernels that the backend does not know";
}

// The sum of three numbers is nothing beside the rest, however slow.
TEST(ReferenceKernels, LittleWorkIsNotNamed) {
  const Plan larger = plan_of(replaced(tiny_text(), "x8]", "x800]"));
  EXPECT_TRUE(reference_kernels(larger.program, backend_of({&kPlainSum})).empty());
}

// The same kernel is the library's own loops for one node and its reference for the other.
TEST(ReferenceKernels, EveryNodeIsAskedAboutByItself) {
  const Plan plan = plan_on("fast_linear");
  const Backend backend = backend_of({&kLibraryLinear});
  const std::vector<ReferenceNode> nodes = reference_kernels(plan.program, backend);
  ASSERT_EQ(nodes.size(), 1U);
  EXPECT_EQ(nodes[0].layer, "head.fc");
  const std::vector<KernelUse> uses = kernels_of(plan.program, backend);
  EXPECT_FALSE(uses[0].is_reference);
  EXPECT_EQ(uses[0].nodes, 1);
  EXPECT_TRUE(uses[2].is_reference);
  EXPECT_EQ(uses[2].kernel, "fast_linear");
  EXPECT_NE(kernels_text(uses).find("fast_linear (plain reference loops)\n"), std::string::npos) << kernels_text(uses);
}

TEST(ReferenceKernels, AWarningIsOneLineAndNamesThree) {
  EXPECT_EQ(reference_kernels_warning({}), "");
  std::vector<ReferenceNode> nodes{{.op = "conv2d", .layer = "conv1"}};
  EXPECT_EQ(reference_kernels_warning(nodes),
            "1 node runs on plain reference kernels, which are hundreds of times slower: conv2d of 'conv1'; see 'snug plan "
            "--kernels'");
  nodes.resize(5, {.op = "linear", .layer = "fc"});
  EXPECT_EQ(reference_kernels_warning(nodes),
            "5 nodes run on plain reference kernels, which are hundreds of times slower: conv2d of 'conv1', linear of 'fc', "
            "linear of 'fc' and 2 more; see 'snug plan --kernels'");
}

TEST(ReferenceKernels, JsonAlwaysHasThem) {
  EXPECT_EQ(plan_json(tiny_plan(), {}).at("reference_kernels"), nlohmann::ordered_json::array());
  const auto json = plan_json(
      tiny_plan(),
      {.reference_kernels = {
           {.op = "conv2d", .layer = "conv1", .kernel = "reference_conv2d", .section = SectionKind::eval, .share = 0.5}}});
  EXPECT_EQ(json.at("reference_kernels").dump(),
            R"([{"op":"conv2d","layer":"conv1","kernel":"reference_conv2d","section":"eval","share":0.5}])");
}

TEST(Instructions, AreTextAndJsonWhereThereAreAny) {
  EXPECT_EQ(instructions_text({.name = "cuda"}), "");
  EXPECT_TRUE(instructions_json({.name = "cuda"}).is_null());
  EXPECT_EQ(instructions_text({.name = "cpu", .instructions = "avx2"}), "Instructions: avx2\n");
  const Backend limited{.name = "cpu", .instructions = "avx2", .instructions_limit = "somebody said so"};
  EXPECT_EQ(instructions_text(limited), "Instructions: avx2 (somebody said so)\n");
  EXPECT_EQ(instructions_json(limited).dump(), R"({"set":"avx2","limited_by":"somebody said so"})");
}

}  // namespace
}  // namespace snug::report
