#include "ir/builder.h"

#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "support/messages.h"
#include "test_ops.h"

namespace snug::testing {
namespace {

struct Fixture {
  std::vector<State> states{{.name = "w", .type = {.dtype = DType::f32, .shape = {4}}},
                            {.name = "g", .type = {.dtype = DType::f32, .shape = {4}}}};
  Section section{.kind = SectionKind::micro, .values = {}, .nodes = {}};
  SectionBuilder builder{states, section};

  ValueId make(const std::string& name) {
    return builder.emit(*find_test_op("make"), {}, {{"shape", std::vector<std::int64_t>{4}}}, {.name = name, .layer = name})
        .front();
  }
};

TEST(SectionBuilder, NamesAreMadeUnique) {
  Fixture f;
  std::string names;
  for (const char* wanted : {"x", "x", "x.2", "x", "x.2"}) names += f.section.value(f.make(wanted)).name + " ";
  EXPECT_EQ(names, "x x.2 x.2.2 x.3 x.2.3 ");
}

TEST(SectionBuilder, NamesThatASectionAlreadyHasAreNotTakenAgain) {
  Fixture f;
  f.make("x");
  SectionBuilder second(f.states, f.section);
  const ValueId again = second.emit(*find_test_op("make"), {}, {{"shape", std::vector<std::int64_t>{4}}}, {.name = "x"}).front();
  EXPECT_EQ(f.section.value(again).name, "x.2");
}

TEST(SectionBuilder, FurtherOutputsAreNamedByTheOp) {
  Fixture f;
  const auto outputs = f.builder.emit(*find_test_op("pair"), {f.make("x")}, {}, {.name = "p"});
  EXPECT_EQ(f.section.value(outputs[0]).name, "p.first");
  EXPECT_EQ(f.section.value(outputs[1]).name, "p.second");
}

TEST(SectionBuilder, ANodeWithoutANameIsCalledByItsOp) {
  Fixture f;
  EXPECT_EQ(f.section.value(f.make("")).name, "make");
}

TEST(SectionBuilder, ReadsTheNewestVersionOfAState) {
  Fixture f;
  const ValueId first = f.builder.read(StateId(0));
  EXPECT_EQ(f.section.value(first).version, 0);
  EXPECT_EQ(f.builder.read(StateId(0)), first);
  f.builder.emit(*find_test_op("copy"), {first}, {}, {.writes = {StateId(0)}});
  const ValueId second = f.builder.read(StateId(0));
  EXPECT_EQ(f.section.value(second).version, 1);
  // A second builder goes on where the first stopped.
  EXPECT_EQ(SectionBuilder(f.states, f.section).read(StateId(0)), second);
}

TEST(SectionBuilder, AStateThatWasNeverReadIsWrittenAsItsFirstVersion) {
  Fixture f;
  const auto outputs =
      f.builder.emit(*find_test_op("pair"), {f.make("x")}, {}, {.name = "p", .writes = {StateId::none(), StateId(1)}});
  EXPECT_FALSE(f.section.value(outputs[0]).is_state());
  EXPECT_EQ(f.section.value(outputs[1]).name, "g");
  EXPECT_EQ(f.section.value(outputs[1]).version, 1);
}

TEST(SectionBuilder, OperandsThatDoNotGoTogetherNameTheOp) {
  Fixture f;
  try {
    f.builder.emit(*find_test_op("sum"), {f.make("x")}, {}, {});
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "sum: got 1 inputs; it takes 2");
  }
  EXPECT_EQ(f.section.nodes.size(), 1U);
}

TEST(SectionBuilder, RefusesNumbersThatTheTextFormCannotWrite) {
  Fixture f;
  const ValueId x = f.make("x");
  for (const double value : {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), std::nan("")}) {
    for (const Attribute& attribute : {Attribute(value), Attribute(std::vector<double>{1, value})}) {
      try {
        f.builder.emit(*find_test_op("copy"), {x}, {{"rate", attribute}}, {});
        FAIL() << "accepted";
      } catch (const UserError& error) {
        EXPECT_TRUE(support::mentions(error.what(), {"copy", "'rate'", "finite"}));
      }
    }
  }
}

TEST(CheckName, TakesWhatTheTextFormCanWrite) {
  EXPECT_NO_THROW(check_name("layer1.0/conv-1_x"));
  EXPECT_NO_THROW(check_name(std::string(200, 'x')));
  for (const std::string& name : {std::string(), std::string("a b"), std::string("a%"), std::string("a,b"), std::string("a\n"),
                                  std::string("\xc3\xa4"), std::string(201, 'x'), std::string("a\0b", 3)}) {
    EXPECT_THROW(check_name(name), UserError) << name;
  }
}

}  // namespace
}  // namespace snug::testing
