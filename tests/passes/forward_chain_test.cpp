// Where a forward pass can be cut that is not carried on by one value alone.
#include "passes/checkpoint/forward_chain.h"

#include <gtest/gtest.h>

#include "autodiff/differentiate.h"
#include "passes/model/choose_recipes.h"
#include "support/chain_networks.h"

namespace snug::testing {
namespace {

Program training(const Program& graph) { return differentiate(choose_recipes(graph)); }

ForwardChain chain_of(const Program& graph) {
  const Program program = training(graph);
  const Section& micro = *program.find_section(SectionKind::micro);
  return find_chain(micro, find_forward_pass(micro));
}

std::size_t longest(const ForwardChain& chain) {
  std::size_t nodes = 0;
  for (const Link& link : chain.links) nodes = std::max(nodes, link.end - link.begin);
  return nodes;
}

TEST(ForwardChain, WhatIsMadeCheaplyFromStatesForbidsNoCut) {
  const ForwardChain chain = chain_of(images_for_every_layer());
  EXPECT_GE(chain.links.size(), std::size_t{kLayers});
  EXPECT_TRUE(chain.beside.empty());
  EXPECT_LE(longest(chain), 6U);
}

TEST(ForwardChain, WhatEveryLaterLayerReadsStaysBesideIt) {
  const Program graph = encoder_and_decoder();
  const ForwardChain chain = chain_of(graph);
  ASSERT_EQ(chain.beside.size(), 1U);
  EXPECT_EQ(graph.section(SectionKind::forward).value(chain.beside[0]).name, "encoder15.relu");
  EXPECT_GE(chain.links.size(), std::size_t{2 * kLayers});
  EXPECT_LE(longest(chain), 6U);
  for (const Link& link : chain.links) {
    EXPECT_EQ(std::count(link.carriers.begin(), link.carriers.end(), chain.beside[0]), 0);
  }
}

class RecurrentChain : public ::testing::TestWithParam<bool> {};

TEST_P(RecurrentChain, TwoValuesCarryItOn) {
  const ForwardChain chain = chain_of(recurrent(GetParam()));
  EXPECT_GE(chain.links.size(), std::size_t{kLayers});
  EXPECT_LE(longest(chain), 20U);
  const auto two =
      std::count_if(chain.links.begin(), chain.links.end(), [](const Link& link) { return link.carriers.size() == 2; });
  EXPECT_GE(two, kLayers);
}

INSTANTIATE_TEST_SUITE_P(Masks, RecurrentChain, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "with_a_mask" : "without_a_mask"; });

}  // namespace
}  // namespace snug::testing
