// Bad text is answered with one sentence that names the line.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "test_ops.h"

namespace snug::testing {
namespace {

std::string refusal(const std::string& text) {
  try {
    parse(text);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

struct Case {
  std::string text;
  std::string message;
};

void expect_refusals(const std::vector<Case>& cases) {
  for (const Case& c : cases) EXPECT_EQ(refusal(c.text), c.message) << c.text;
}

TEST(ParseErrors, OfTheFirstLine) {
  expect_refusals({
      {"", "the text is not a program: its first line must begin with 'program'"},
      {"\n  \n", "the text is not a program: its first line must begin with 'program'"},
      {"hello", "line 1 of the program: expected 'program' before 'hello'"},
      {"\n\nsection micro", "line 3 of the program: expected 'program' before 'section micro'"},
      {"programs p batch 1 microbatch 1", "line 1 of the program: expected 'program' before 'programs p batch 1 microbatch 1'"},
      {"program", "line 1 of the program: expected a name before ''"},
      {"program p", "line 1 of the program: expected 'batch' before ''"},
      {"program p batch x microbatch 1", "line 1 of the program: expected a whole number before 'x microbatch 1'"},
      {"program p batch 1", "line 1 of the program: expected 'microbatch' before ''"},
      {"program p batch 1 microbatch 99999999999999999999",
       "line 1 of the program: expected a whole number before '99999999999999999999'"},
      {"program p batch 1 microbatch 1 x", "line 1 of the program: unexpected text at the end of the line"},
      {"program p% batch 1 microbatch 1", "line 1 of the program: expected 'batch' before '% batch 1 microbatch 1'"},
  });
}

TEST(ParseErrors, OfStates) {
  const auto state = [](const std::string& line) { return "program p batch 1 microbatch 1\nstate " + line; };
  expect_refusals({
      {state(""), "line 2 of the program: expected a name before ''"},
      {state("w f32[1] parameter"), "line 2 of the program: expected ':' before 'f32[1] parameter'"},
      {state("w : f33[1] parameter"), "line 2 of the program: 'f33' is not an element type"},
      {state("w : f32 parameter"), "line 2 of the program: expected '[' before 'parameter'"},
      {state("w : f32[2,3] parameter"), "line 2 of the program: expected 'x' before ',3] parameter'"},
      {state("w : f32[2x] parameter"), "line 2 of the program: expected a whole number before '] parameter'"},
      {state("w : f32[2"), "line 2 of the program: expected 'x' before ''"},
      {state("w : f32[2x0] parameter"), "line 2 of the program: dimension 1 of a shape is 0; every dimension must be at least 1"},
      {state("w : f32[-4] parameter"), "line 2 of the program: dimension 0 of a shape is -4; every dimension must be at least 1"},
      {state("w : f32[1x1x1x1x1x1x1] parameter"),
       "line 2 of the program: a shape of 7 dimensions is not supported; use at most 6"},
      {state("w : f32[4294967296x4294967296] parameter"),
       "line 2 of the program: shape [4294967296x4294967296] has more than 2^48 elements"},
      {state("w : f32[4]/opaque(b) parameter"), "line 2 of the program: expected ',' before ') parameter'"},
      {state("w : f32[4]/opaque(b,-1) parameter"), "line 2 of the program: a layout of -1 bytes is not possible"},
      {state("w : f32[4]"), "line 2 of the program: expected a name before ''"},
      {state("w : f32[4] weight"), "line 2 of the program: 'weight' is not a role"},
      {state("w : f32[4] parameter trainable host"), "line 2 of the program: unexpected text at the end of the line"},
      {state("w : f32[4] parameter\nstate w : f32[4] parameter"), "line 3 of the program: state 'w' appears twice"},
      {state("w : f32[4] parameter\nsection micro\nstate v : f32[4] parameter"),
       "line 4 of the program: states must come before the first section"},
  });
}

TEST(ParseErrors, OfNodes) {
  const auto node = [](const std::string& line) {
    return "program p batch 1 microbatch 1\nstate w : f32[4] parameter\nsection micro\n" + line;
  };
  const std::string make = "%a = make() {shape=[4]} : f32[4] activation ; forward\n";
  expect_refusals({
      {"program p batch 1 microbatch 1\n" + make, "line 2 of the program: a node is outside a section"},
      {"program p batch 1 microbatch 1\nsection middle", "line 2 of the program: 'middle' is not a section"},
      {node("= make()"), "line 4 of the program: expected a name before '= make()'"},
      {node("%a make()"), "line 4 of the program: expected '=' before 'make()'"},
      {node("%a = melt()"), "line 4 of the program: there is no op 'melt'"},
      {node("%a = make {shape=[4]}"), "line 4 of the program: expected '(' before '{shape=[4]}'"},
      {node("%a = copy(%x) : f32[4] activation ; forward"), "line 4 of the program: %x is read before it is made"},
      {node("%a = copy(%a) : f32[4] activation ; forward"), "line 4 of the program: %a is read before it is made"},
      {node(make + "%b = copy(%a) : f32[4] activation in %b ; forward"), "line 5 of the program: %b is read before it is made"},
      {node(make + make), "line 5 of the program: %a is made twice"},
      {node("%a, %a = pair(w@0)"), "line 4 of the program: %a is made twice"},
      {node("%a = copy(v@0)"), "line 4 of the program: there is no state 'v'"},
      {node("%a = copy(w)"), "line 4 of the program: expected '@' before ')'"},
      {node("%a = copy(w@x)"), "line 4 of the program: expected a whole number before 'x)'"},
      {node("%a = copy(w@-1)"), "line 4 of the program: version -1 of 'w' is not possible"},
      {node("%a = copy(w@1000001)"), "line 4 of the program: version 1000001 of 'w' is not possible"},
      {node("%a = copy(w@0 w@0)"), "line 4 of the program: expected ',' before 'w@0)'"},
      {node("%a = copy(w@0"), "line 4 of the program: expected ',' before ''"},
      {node("%a = make() {}"), "line 4 of the program: expected a name before '}'"},
      {node("%a = make() {shape}"), "line 4 of the program: expected '=' before '}'"},
      {node("%a = make() {shape=}"), "line 4 of the program: expected a whole number before '}'"},
      {node("%a = make() {shape=[4}"), "line 4 of the program: expected ',' before '}'"},
      {node("%a = make() {shape=[4],"), "line 4 of the program: expected a name before ''"},
      {node("%a = make() {x=1, x=2}"), "line 4 of the program: attribute 'x' appears twice"},
      {node("%a = make() {x=[1,2.0]}"), "line 4 of the program: a list mixes whole and real numbers"},
      {node("%a = make() {x=nan}"), "line 4 of the program: a number is not finite"},
      {node("%a = make() {x=[-inf]}"), "line 4 of the program: a number is not finite"},
      {node("%a = make() {x=1e999}"), "line 4 of the program: expected a number before '1e999}'"},
      {node("%a = make() {x=9223372036854775808}"),
       "line 4 of the program: expected a whole number before '9223372036854775808}'"},
      {node("%a = make() {shape=[4]} ; forward"), "line 4 of the program: expected ':' before '; forward'"},
      {node("%a = make() {shape=[4]} : state ; forward"), "line 4 of the program: 'state' is not an element type"},
      {node("w@1 = copy(w@0) : f32[4] parameter ; forward"),
       "line 4 of the program: expected 'state' before 'f32[4] parameter ; forward'"},
      {node("%a, %b = pair(w@0) : f32[4] activation ; forward"), "line 4 of the program: expected ',' before '; forward'"},
      {node("%a = copy(w@0) : f32[4] activation in ; forward"), "line 4 of the program: expected a name before '; forward'"},
      {node("%a = copy(w@0) : f32[4] activation using ; forward"), "line 4 of the program: expected a name before '; forward'"},
      {node("%a = copy(w@0) : f32[4] activation workspace %s ; forward"),
       "line 4 of the program: expected a name before '; forward'"},
      {node("%a = copy(w@0) : f32[4] activation"), "line 4 of the program: expected ';' before ''"},
      {node("%a = copy(w@0) : f32[4] activation ; onward"), "line 4 of the program: 'onward' is not a phase"},
      {node("%a = copy(w@0) : f32[4] activation ; forward a b"), "line 4 of the program: unexpected text at the end of the line"},
      {node("%a = copy(w@0) : f32[4] activation ; forward\r"), "line 4 of the program: expected a name before '\r'"},
      {node("%" + std::string(201, 'a') + " = make()"),
       "line 4 of the program: '" + std::string(200, 'a') +
           "' is not a name; use 1 to 200 letters, digits and the characters . _ - /"},
  });
}

}  // namespace
}  // namespace snug::testing
