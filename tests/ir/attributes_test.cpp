#include "ir/attributes.h"

#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/messages.h"

namespace snug {
namespace {

template <typename F>
std::string refusal(F f) {
  return support::message_of<UserError>([&] { f(); });
}

const Attributes kAll{{"stride", std::vector<std::int64_t>{2, 1}},
                      {"epsilon", 1e-5},
                      {"groups", std::int64_t{4}},
                      {"mean", std::vector<double>{0.5}}};

TEST(Attributes, AreKeptSortedByName) {
  std::string names;
  for (const auto& [name, value] : kAll.entries()) names += name + " ";
  EXPECT_EQ(names, "epsilon groups mean stride ");
}

TEST(Attributes, DoNotDependOnTheOrderTheyWereGivenIn) {
  const Attributes other{{"mean", std::vector<double>{0.5}},
                         {"stride", std::vector<std::int64_t>{2, 1}},
                         {"groups", std::int64_t{4}},
                         {"epsilon", 1e-5}};
  EXPECT_EQ(kAll, other);
  EXPECT_NE(kAll, Attributes());
}

TEST(Attributes, GiveTheirValuesByKind) {
  EXPECT_EQ(kAll.integer("groups"), 4);
  EXPECT_EQ(kAll.real("epsilon"), 1e-5);
  EXPECT_EQ(kAll.integers("stride"), (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(kAll.reals("mean"), (std::vector<double>{0.5}));
  EXPECT_EQ(kAll.integer_or("groups", 1), 4);
  EXPECT_EQ(kAll.integer_or("axis", 1), 1);
}

TEST(Attributes, AnAbsentOneIsNamed) {
  EXPECT_TRUE(support::mentions(refusal([] { return kAll.integer("axis"); }), {"'axis'", "missing"}));
  EXPECT_TRUE(support::mentions(refusal([] { return kAll.real("group"); }), {"'group'", "missing"}));
}

TEST(Attributes, OneOfAnotherKindIsNotConverted) {
  EXPECT_TRUE(support::mentions(refusal([] { return kAll.integer("epsilon"); }), {"'epsilon'", "whole number"}));
  EXPECT_TRUE(support::mentions(refusal([] { return kAll.real("groups"); }), {"'groups'", "real number"}));
  EXPECT_TRUE(support::mentions(refusal([] { return kAll.integers("groups"); }), {"'groups'", "list", "whole"}));
  EXPECT_TRUE(support::mentions(refusal([] { return kAll.reals("stride"); }), {"'stride'", "list", "real"}));
  EXPECT_TRUE(support::mentions(refusal([] { return kAll.integer_or("epsilon", 1); }), {"'epsilon'", "whole number"}));
}

TEST(Attributes, SetReplacesAndEraseRemoves) {
  Attributes attributes = kAll;
  attributes.set("groups", std::int64_t{8});
  attributes.erase("epsilon");
  attributes.erase("axis");
  EXPECT_EQ(attributes.integer("groups"), 8);
  EXPECT_FALSE(attributes.has("epsilon"));
  EXPECT_EQ(attributes.entries().size(), 3U);
}

}  // namespace
}  // namespace snug
