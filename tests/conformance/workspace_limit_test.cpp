// Less workspace a kernel: a plan of fewer bytes, and the same training within what the chosen kernels declare.
#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "base/error.h"
#include "conformance/backend_conformance.h"
#include "conformance/cuda_under_test.h"
#include "frontend/zoo.h"
#include "plan/compile.h"
#include "support/labeled.h"
#include "train/session.h"

namespace snug::conformance {
namespace {

constexpr std::int64_t kBatch = 8;

// Weights of 128 x 128, whose gradients want more workspace than there is to gain elsewhere at so small a batch.
Plan plan_with(std::optional<Bytes> limit, const Backend& backend) {
  const Program graph = frontend::build_zoo_model("wrn-10-2", {.batch = 4, .image_size = 16});
  return compile(graph, backend, {.batch = kBatch, .methods = {.workspace_limit = limit}});
}

// Kernels with less workspace are for weights in oneDNN's own layouts, which it has from AVX2 on. Plain weights need none at all:
// the reference takes them.
bool keeps_own_layouts(const Plan& plan) {
  return std::ranges::any_of(plan.program.states,
                             [](const State& state) { return state.type.layout.kind == Layout::Kind::opaque; });
}

struct Use {
  std::set<std::string> kernels;
  Bytes largest;
};

Use use_of(const Plan& plan) {
  Use use;
  for (const Section& section : plan.program.sections) {
    for (const Node& node : section.nodes) {
      use.kernels.insert(node.kernel);
      if (node.workspace.valid()) use.largest = std::max(use.largest, section.value(node.workspace).type.bytes());
    }
  }
  return use;
}

std::vector<double> losses_of(train::Session& session) {
  std::vector<std::byte> images(kBatch * 16 * 16 * 3);
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<std::byte>((i * 2654435761U) >> 24U);
  std::vector<std::int32_t> labels(kBatch);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 10);
  session.set_learning_rate(0.02);
  std::vector<double> losses;
  for (int step = 0; step < 5; ++step) losses.push_back(session.train_step(support::Labeled(images, labels)).loss);
  return losses;
}

TEST(WorkspaceLimit, ASmallerOneGivesAPlanOfFewerBytes) {
  const Backend backend = backends::cpu_backend(2);
  const Plan free = plan_with(std::nullopt, backend);
  Bytes before = free.planned_peak_bytes;
  for (const std::int64_t limit : {400'000, 200'000}) {
    const Plan limited = plan_with(Bytes(limit), backend);
    EXPECT_LE(use_of(limited).largest, Bytes(limit));
    EXPECT_LT(limited.planned_peak_bytes, before) << limit;
    before = limited.planned_peak_bytes;
  }
  EXPECT_GT(use_of(free).largest, Bytes(400'000));
}

TEST(WorkspaceLimit, TrainingStaysTheSameUpToTheOrderOfSums) {
  const Backend backend = backends::cpu_backend(2);
  train::Session whole(plan_with(std::nullopt, backend), backend, 3);
  if (!keeps_own_layouts(whole.plan())) GTEST_SKIP() << "oneDNN keeps no layout of its own here";
  train::Session sliced(plan_with(Bytes(200'000), backend), backend, 3);
  const Use use = use_of(sliced.plan());
  EXPECT_TRUE(use.kernels.contains("onednn_conv2d_grad_weight_blocks") ||
              use.kernels.contains("onednn_conv2d_grad_weight_quarters"));
  EXPECT_TRUE(use.kernels.contains("onednn_conv2d_grad_input_blocks") ||
              use.kernels.contains("onednn_conv2d_grad_input_quarters"));
  const std::vector<double> expected = losses_of(whole), got = losses_of(sliced);
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-4 * std::abs(expected[i])) << i;
  EXPECT_LT(got.back(), got.front());
}

TEST(WorkspaceLimit, ALimitThatNothingKeepsToIsRefusedByName) {
  const Backend backend = backends::cpu_backend(2);
  if (!keeps_own_layouts(plan_with(std::nullopt, backend))) GTEST_SKIP() << "oneDNN keeps no layout of its own here";
  try {
    plan_with(Bytes(1000), backend);
    FAIL() << "1000 bytes are not enough for a convolution";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("a workspace limit of 1000 bytes is too small: conv2d"), std::string::npos)
        << error.what();
  }
}

// Compares every kernel whose op's name begins so, each in the place of the first that would be chosen.
std::set<std::string> compare_variants(const Backend& backend, std::string_view of, DType dtype) {
  std::set<std::string> compared;
  for (const KernelDef* variant : backend.kernels) {
    if (!variant->op.starts_with(of) || backend.find(variant->name) != variant || variant->name.starts_with("reference_"))
      continue;
    Backend preferring = backend;
    std::erase(preferring.kernels, variant);
    preferring.kernels.insert(preferring.kernels.begin(), variant);
    for (const OpCase& test : op_cases()) {
      if (test.op->name != variant->op) continue;
      const Comparison comparison = compare(preferring, test, dtype);
      for (const std::string& complaint : comparison.complaints)
        ADD_FAILURE() << test.name << " by " << comparison.kernel << ": " << complaint;
      compared.insert(comparison.kernel);
    }
  }
  return compared;
}

// Only the first kernel of an op is chosen without a limit, so the suite of all backends never meets the others.
TEST(WorkspaceLimit, EveryVariantAgreesWithTheReference) {
  EXPECT_TRUE(compare_variants(backends::cpu_backend(2), "", DType::f32).contains("onednn_linear_grad_weight_few_rows"));
}

// These take all three types.
TEST(WorkspaceLimit, EveryVariantOfAClassifierWithItsLossAgreesIn16BitsToo) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const std::set<std::string> compared = compare_variants(backends::cpu_backend(2), "linear_cross_entropy", dtype);
    EXPECT_TRUE(compared.contains("onednn_linear_cross_entropy_16"));
    for (const char* how : {"summed_1024", "summed_256", "summed_64", "twice_256", "twice_64", "twice_16"})
      EXPECT_TRUE(compared.contains(std::string("onednn_linear_cross_entropy_step_") + how)) << how;
  }
}

TEST(WorkspaceLimit, EveryVariantOfAClassifierWithItsLossAgreesOn_cuda) {
  std::string why_not;
  const std::optional<Backend> cuda = open_cuda(why_not);
  if (!cuda) GTEST_SKIP() << why_not;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const std::set<std::string> compared = compare_variants(*cuda, "linear_cross_entropy", dtype);
    for (const char* rows : {"4096", "1024", "256", "128"})
      EXPECT_TRUE(compared.contains(std::string("cublaslt_linear_cross_entropy_") + rows)) << rows;
    for (const char* how :
         {"summed_4096", "summed_2048", "summed_1024", "twice_2048", "twice_1024", "twice_512", "twice_256", "twice_128"})
      EXPECT_TRUE(compared.contains(std::string("cublaslt_linear_cross_entropy_step_") + how)) << how;
  }
}

}  // namespace
}  // namespace snug::conformance
