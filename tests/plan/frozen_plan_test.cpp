// What freezing saves, in bytes.
#include <gtest/gtest.h>

#include "autodiff/differentiate.h"
#include "frontend/graph_builder.h"
#include "passes/model/add_update.h"
#include "passes/model/choose_recipes.h"
#include "plan/compile.h"
#include "support/accepting_backend.h"
#include "zoo_models.h"

namespace snug::testing {
namespace {

// Of the model with the recipes of another, which has the same nodes.
std::int64_t peak_with(Program model, const Program& recipes, const Backend& backend) {
  std::vector<Node>& nodes = model.section(SectionKind::forward).nodes;
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i].attributes = recipes.section(SectionKind::forward).nodes[i].attributes;
  std::vector<PassTiming> timings;
  return place(run_passes(add_update(differentiate(std::move(model)), {}), memory_passes(), {.backend = backend}, {}, timings))
      .planned_peak_bytes.count();
}

// All convolutions but the first: the ReLUs before them keep bits instead of values.
TEST(FrozenPlans, KeepNoInputsForGradientsThatNobodyWants) {
  const AcceptingBackend backend;
  const Program trained = build({"vgg-16", 32}, 128);
  Program frozen = trained;
  frontend::freeze(frozen, {"features.2", "features.5", "features.7", "features.1"});
  // As if every convolution kept its input.
  const std::int64_t keeping = peak_with(frozen, choose_recipes(trained), backend);
  const std::int64_t peak = compile(frozen, backend).planned_peak_bytes.count();
  EXPECT_EQ(keeping, 437'257'920);
  EXPECT_EQ(peak, 404'752'064);  // 32,505,856 bytes less
}

TEST(FrozenPlans, HaveNeitherGradientsNorMomentaOfWhatIsFrozen) {
  const AcceptingBackend backend;
  const auto bytes_of = [&](const Program& graph, MemoryClass memory_class) {
    return peak_moment(compile(graph, backend)).by_class[static_cast<std::size_t>(memory_class)].count();
  };
  Program graph = build({"wrn-28-2"}, 100);
  const std::int64_t all = frontend::parameter_count(graph);
  frontend::freeze(graph, {"stem", "group"});
  const std::int64_t head = 2 * 128 + 128 * 10 + 10;
  ASSERT_EQ(all, 1'456'858);
  EXPECT_EQ(bytes_of(graph, MemoryClass::gradient), 4 * head);
  EXPECT_EQ(bytes_of(graph, MemoryClass::optimizer), 4 * head);
}

}  // namespace
}  // namespace snug::testing
