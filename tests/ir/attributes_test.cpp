#include "ir/attributes.h"

#include <string>

#include <gtest/gtest.h>

#include "base/error.h"

namespace snug {
namespace {

template <typename F>
std::string refusal(F f) {
  try {
    f();
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
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
  EXPECT_EQ(refusal([] { return kAll.integer("axis"); }), "attribute 'axis' is missing");
  EXPECT_EQ(refusal([] { return kAll.real("group"); }), "attribute 'group' is missing");
}

TEST(Attributes, OneOfAnotherKindIsNotConverted) {
  EXPECT_EQ(refusal([] { return kAll.integer("epsilon"); }), "attribute 'epsilon' is not a whole number");
  EXPECT_EQ(refusal([] { return kAll.real("groups"); }), "attribute 'groups' is not a real number");
  EXPECT_EQ(refusal([] { return kAll.integers("groups"); }), "attribute 'groups' is not a list of whole numbers");
  EXPECT_EQ(refusal([] { return kAll.reals("stride"); }), "attribute 'stride' is not a list of real numbers");
  EXPECT_EQ(refusal([] { return kAll.integer_or("epsilon", 1); }), "attribute 'epsilon' is not a whole number");
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
