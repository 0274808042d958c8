#include "plan/allowance.h"

#include <gtest/gtest.h>

#include <snug/error.h>

namespace snug::testing {
namespace {

std::string refusal(const std::string& text) {
  try {
    parse_allowance(text);
  } catch (const UserError& error) {
    return error.what();
  }
  return "it was taken";
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
  EXPECT_TRUE(parse_allowance("compressed").has(Exactness::compressed));
  EXPECT_FALSE(parse_allowance("compressed").has(Exactness::microbatch));
}

TEST(AllowanceTest, WhatIsNoRungIsRefusedWithTheKnownOnes) {
  EXPECT_EQ(refusal("exact,magic"), "allow is 'magic'; it can be exact, reassociated, microbatch, precision, compressed");
  EXPECT_EQ(refusal("exact,,microbatch"), "allow is ''; it can be exact, reassociated, microbatch, precision, compressed");
  EXPECT_EQ(refusal(""), "allow must name at least one of exact, reassociated, microbatch, precision, compressed");
}

TEST(AllowanceTest, RungsWithoutAMethodAreNotAvailableYet) {
  EXPECT_TRUE(parse_allowance("precision").has(Exactness::precision));
  for (const std::string rung : {"sparse"}) {
    EXPECT_EQ(refusal("exact," + rung), "allow '" + rung +
                                            "' is not available yet: no plan goes that far by itself; use exact, reassociated, "
                                            "microbatch, precision, compressed");
  }
}

}  // namespace
}  // namespace snug::testing
