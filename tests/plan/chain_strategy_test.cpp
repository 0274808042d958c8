// Every strategy saves bytes on networks that one value alone does not carry on, and computes the same.
#include <gtest/gtest.h>

#include "../passes/meaning.h"
#include "plan/compile.h"
#include "support/accepting_backend.h"
#include "support/chain_networks.h"

namespace snug::testing {
namespace {

class ChainStrategy : public ::testing::TestWithParam<std::string> {};

// Transient bytes; parameters are the same whatever is kept.
std::int64_t bytes_of(const Plan& plan) { return (plan.planned_peak_bytes - plan.persistent_bytes).count(); }

TEST_P(ChainStrategy, SavesBytesAndKeepsTheMeaning) {
  const AcceptingBackend backend;
  for (const Program& graph : {images_for_every_layer(), encoder_and_decoder(), recurrent(), recurrent(true)}) {
    SCOPED_TRACE(graph.name);
    const Plan plain = compile(graph, backend, {.passes = {.disabled = {"share_bytes"}}});
    const Plan plan =
        compile(graph, backend,
                {.methods = {.checkpoint = parse_checkpoint_strategy(GetParam())}, .passes = {.disabled = {"share_bytes"}}});
    EXPECT_LT(bytes_of(plan), bytes_of(plain) * 4 / 5);
    EXPECT_EQ(meaning_of(plan.program), meaning_of(plain.program));
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, ChainStrategy, ::testing::Values("sqrt", "log", "every-6", "chen", "optimal:1"),
                         [](const auto& test) {
                           std::string name = test.param;
                           for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
                           return name;
                         });

}  // namespace
}  // namespace snug::testing
