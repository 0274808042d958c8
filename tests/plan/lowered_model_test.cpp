#include "plan/lowered_model.h"

#include <gtest/gtest.h>

#include "frontend/zoo.h"
#include "ir/text.h"
#include "support/accepting_backend.h"

namespace snug::testing {
namespace {

FitRequest request() {
  return {.model = [](std::int64_t microbatch) { return frontend::build_zoo_model("small-cnn", {.batch = microbatch}); },
          .options = {.batch = 12}};
}

TEST(LoweredModel, IsWhatTheModelIsLoweredToWhateverWasAskedBefore) {
  const AcceptingBackend backend{{}};
  const FitRequest asked = request();
  LoweredModel programs(asked, backend);
  const auto lowered = [&](std::int64_t microbatch) {
    return print(lower_model(asked.model(microbatch), backend, asked.options));
  };
  EXPECT_EQ(print(programs.named(12)), lowered(12));
  EXPECT_EQ(print(programs.named(4)), lowered(4));
  programs.nameless(4);
  EXPECT_EQ(print(programs.named(4)), lowered(4));
  programs.nameless(6);
  EXPECT_EQ(print(programs.named(12)), lowered(12));
}

TEST(LoweredModel, OnlyNamesAreMissingWithoutNames) {
  const AcceptingBackend backend{{}};
  const FitRequest asked = request();
  LoweredModel programs(asked, backend);
  const Program named = programs.named(4);
  const Program& nameless = programs.nameless(4);
  EXPECT_EQ(nameless.microbatch, 4);
  ASSERT_EQ(nameless.sections.size(), named.sections.size());
  for (std::size_t s = 0; s < named.sections.size(); ++s) {
    ASSERT_EQ(nameless.sections[s].values.size(), named.sections[s].values.size());
    ASSERT_EQ(nameless.sections[s].nodes.size(), named.sections[s].nodes.size());
    for (std::size_t v = 0; v < named.sections[s].values.size(); ++v) {
      EXPECT_EQ(nameless.sections[s].values[v].name, "");
      EXPECT_EQ(nameless.sections[s].values[v].type, named.sections[s].values[v].type);
    }
    for (std::size_t n = 0; n < named.sections[s].nodes.size(); ++n) {
      EXPECT_EQ(nameless.sections[s].nodes[n].layer, "");
      EXPECT_EQ(nameless.sections[s].nodes[n].attributes, named.sections[s].nodes[n].attributes);
    }
  }
}

}  // namespace
}  // namespace snug::testing
