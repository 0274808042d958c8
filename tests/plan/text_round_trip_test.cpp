// The text form of whole programs: what is printed reads back as the same program, to the byte of its plan.
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "autodiff/differentiate.h"
#include "base/error.h"
#include "frontend/graph_builder.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "passes/model/add_update.h"
#include "passes/model/narrow.h"
#include "plan/compile.h"
#include "support/accepting_backend.h"
#include "zoo_models.h"

namespace snug::testing {
namespace {

void expect_round_trip(const Program& graph, const std::string& what) {
  const AcceptingBackend backend(
      {.workspace = {{"conv2d", Bytes(1000)}, {"sgd", Bytes(1)}}, .refuses_accumulation = {"conv2d_grad_input"}});
  const Plan plan = compile(graph, backend);
  const std::string text = print(plan.program);
  const Program read = parse_program(text, ops::find);
  ASSERT_TRUE(print(read) == text) << what;  // not EXPECT_EQ: its difference of megabytes takes minutes
  EXPECT_EQ(find_defect(read), std::nullopt) << what;
  EXPECT_EQ(place(read).planned_peak_bytes, plan.planned_peak_bytes) << what;
}

class ZooText : public ::testing::TestWithParam<ZooModel> {};

TEST_P(ZooText, ReadsBackAfterThePasses) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const bool as_bytes : {true, false}) {
      expect_round_trip(narrow(build(GetParam(), 2, {.staged_as_bytes = as_bytes}), dtype),
                        fmt::format("{}, {}", name_of(dtype), as_bytes));
    }
  }
}

TEST_P(ZooText, ReadsBackBeforeThePasses) {
  const std::string text = print(add_update(differentiate(build(GetParam(), 2)), {}));
  const Program read = parse_program(text, ops::find);
  EXPECT_TRUE(print(read) == text);
  EXPECT_EQ(find_defect(read), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Zoo, ZooText, ::testing::ValuesIn(kZooModels), [](const auto& instance) {
  std::string name = instance.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Text, OfAThousandLayersReadsBack) { expect_round_trip(build({"preresnet-1001"}, 1), "preresnet-1001"); }

TEST(Text, OfTheLongestLayerNamesReadsBack) {
  frontend::GraphBuilder b("model", 2);
  const auto longest = [](char letter) { return std::string(150, letter); };
  ValueId x =
      b.conv2d(longest('c'), b.features({3, 8, 8}, Layout::channels_last()), {.out_channels = 4, .padding = 1, .bias = true});
  x = b.max_pool(longest('p'), b.relu(longest('r'), b.batch_norm(longest('b'), x)));
  x = b.add(longest('a'), x, b.conv2d(longest('d'), x, {.out_channels = 4, .padding = 1}));
  b.softmax_cross_entropy(b.linear(longest('f'), b.global_avg_pool(longest('g'), x), 5));
  expect_round_trip(std::move(b).finish(), "long names");
}

}  // namespace
}  // namespace snug::testing
