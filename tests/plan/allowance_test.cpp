#include "plan/allowance.h"

#include <gtest/gtest.h>

#include "support/messages.h"
#include <snug/error.h>

namespace snug::testing {
namespace {

std::string refusal(const std::string& text) {
  return support::message_of<UserError>([&] { parse_allowance(text); });
}

TEST(AllowanceTest, ExactIsAlwaysAllowedAndTheRestOnlyWhenNamed) {
  EXPECT_EQ(parse_allowance("exact,reassociated,microbatch"), Allowance());
  EXPECT_EQ(parse_allowance("microbatch,reassociated"), Allowance());
  EXPECT_EQ(parse_allowance("exact"), Allowance::exact_only());
  const Allowance split = parse_allowance("microbatch");
  EXPECT_TRUE(split.has(Exactness::exact));
  EXPECT_TRUE(split.has(Exactness::microbatch));
  EXPECT_FALSE(split.has(Exactness::reassociated));
  EXPECT_FALSE(Allowance().has(Exactness::precision));
  EXPECT_FALSE(Allowance().has(Exactness::compressed));
  EXPECT_TRUE(parse_allowance("exact,compressed").has(Exactness::compressed));
  EXPECT_FALSE(parse_allowance("exact,compressed").has(Exactness::microbatch));
}

TEST(AllowanceTest, WhatIsNoRungIsRefusedWithTheKnownOnes) {
  EXPECT_TRUE(support::mentions(refusal("exact,magic"), {"'magic'", "reassociated"}));
  EXPECT_TRUE(support::mentions(refusal("exact,,microbatch"), {"''", "can be", "exact", "sparse"}));
  EXPECT_TRUE(support::mentions(refusal(""),
                                {"at least one", "exact", "reassociated", "microbatch", "precision", "compressed", "sparse"}));
}

TEST(AllowanceTest, ALossyRungByItselfIsBesideTheUsualOnes) {
  EXPECT_EQ(parse_allowance("precision,sparse"), Allowance().add(Exactness::precision).add(Exactness::sparse));
  EXPECT_EQ(parse_allowance("exact,precision"), Allowance::exact_only().add(Exactness::precision));
  EXPECT_EQ(parse_allowance("microbatch"), Allowance::exact_only().add(Exactness::microbatch));
}

TEST(AllowanceTest, EveryRungCanBeAllowed) {
  const Allowance all = parse_allowance("exact,reassociated,microbatch,precision,compressed,sparse");
  for (const Exactness rung : {Exactness::exact, Exactness::reassociated, Exactness::microbatch, Exactness::precision,
                               Exactness::compressed, Exactness::sparse}) {
    EXPECT_TRUE(all.has(rung)) << name_of(rung);
    EXPECT_EQ(parse_allowance("exact").has(rung), rung == Exactness::exact) << name_of(rung);
  }
}

}  // namespace
}  // namespace snug::testing
