// Bad text is answered with one sentence that names the line.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/messages.h"
#include "test_ops.h"

namespace snug::testing {
namespace {

std::string refusal(const std::string& text) {
  return support::message_of<UserError>([&] { parse(text); });
}

struct Case {
  std::string text;
  std::vector<std::string> facts;
};

void expect_refusals(const std::vector<Case>& cases) {
  for (const Case& c : cases) EXPECT_TRUE(support::mentions(refusal(c.text), c.facts)) << c.text;
}

TEST(ParseErrors, OfTheFirstLine) {
  expect_refusals({
      {"", {"'program'", "first line"}},
      {"\n  \n", {"'program'", "first line"}},
      {"hello", {"line 1", "'program'", "'hello'"}},
      {"\n\nsection micro", {"line 3", "'program'", "'section micro'"}},
      {"programs p batch 1 microbatch 1", {"line 1", "'program'", "'programs p batch 1 microbatch 1'"}},
      {"program", {"line 1", "name", "''"}},
      {"program p", {"line 1", "'batch'", "''"}},
      {"program p batch x microbatch 1", {"line 1", "whole number", "'x microbatch 1'"}},
      {"program p batch 1", {"line 1", "'microbatch'", "''"}},
      {"program p batch 1 microbatch 99999999999999999999", {"line 1", "whole number", "'99999999999999999999'"}},
      {"program p batch 1 microbatch 1 x", {"line 1", "at the end"}},
      {"program p% batch 1 microbatch 1", {"line 1", "'batch'", "'% batch 1 microbatch 1'"}},
  });
}

TEST(ParseErrors, OfStates) {
  const auto state = [](const std::string& line) { return "program p batch 1 microbatch 1\nstate " + line; };
  expect_refusals({
      {state(""), {"line 2", "name", "''"}},
      {state("w f32[1] parameter"), {"line 2", "':'", "'f32[1] parameter'"}},
      {state("w : f33[1] parameter"), {"line 2", "'f33'", "element type"}},
      {state("w : f32 parameter"), {"line 2", "'['", "'parameter'"}},
      {state("w : f32[2,3] parameter"), {"line 2", "'x'", "',3] parameter'"}},
      {state("w : f32[2x] parameter"), {"line 2", "whole number", "'] parameter'"}},
      {state("w : f32[2"), {"line 2", "'x'", "''"}},
      {state("w : f32[2x0] parameter"), {"line 2", "dimension 1", "0"}},
      {state("w : f32[-4] parameter"), {"line 2", "dimension 0", "-4"}},
      {state("w : f32[1x1x1x1x1x1x1] parameter"), {"line 2", "7 dimensions", "6"}},
      {state("w : f32[4294967296x4294967296] parameter"), {"line 2", "[4294967296x4294967296]", "2^48"}},
      {state("w : f32[4]/opaque(b) parameter"), {"line 2", "','", "') parameter'"}},
      {state("w : f32[4]/opaque(b,-1) parameter"), {"line 2", "layout", "-1"}},
      {state("w : f32[4]"), {"line 2", "name", "''"}},
      {state("w : f32[4] weight"), {"line 2", "'weight'", "role"}},
      {state("w : f32[4] parameter trainable host"), {"line 2", "at the end"}},
      {state("w : f32[4] parameter\nstate w : f32[4] parameter"), {"line 3", "'w'", "twice"}},
      {state("w : f32[4] parameter\nsection micro\nstate v : f32[4] parameter"), {"line 4", "states", "before", "section"}},
  });
}

TEST(ParseErrors, OfNodes) {
  const auto node = [](const std::string& line) {
    return "program p batch 1 microbatch 1\nstate w : f32[4] parameter\nsection micro\n" + line;
  };
  const std::string make = "%a = make() {shape=[4]} : f32[4] activation ; forward\n";
  expect_refusals({
      {"program p batch 1 microbatch 1\n" + make, {"line 2", "node", "outside"}},
      {"program p batch 1 microbatch 1\nsection middle", {"line 2", "'middle'", "section"}},
      {node("= make()"), {"line 4", "name", "'= make()'"}},
      {node("%a make()"), {"line 4", "'='", "'make()'"}},
      {node("%a = melt()"), {"line 4", "no op", "'melt'"}},
      {node("%a = make {shape=[4]}"), {"line 4", "'('", "'{shape=[4]}'"}},
      {node("%a = copy(%x) : f32[4] activation ; forward"), {"line 4", "%x", "read before"}},
      {node("%a = copy(%a) : f32[4] activation ; forward"), {"line 4", "%a", "read before"}},
      {node(make + "%b = copy(%a) : f32[4] activation in %b ; forward"), {"line 5", "%b", "read before"}},
      {node(make + make), {"line 5", "%a", "twice"}},
      {node("%a, %a = pair(w@0)"), {"line 4", "%a", "twice"}},
      {node("%a = copy(v@0)"), {"line 4", "no state", "'v'"}},
      {node("%a = copy(w)"), {"line 4", "'@'", "')'"}},
      {node("%a = copy(w@x)"), {"line 4", "whole number", "'x)'"}},
      {node("%a = copy(w@-1)"), {"line 4", "version -1", "'w'"}},
      {node("%a = copy(w@1000001)"), {"line 4", "version 1000001", "'w'"}},
      {node("%a = copy(w@0 w@0)"), {"line 4", "','", "'w@0)'"}},
      {node("%a = copy(w@0"), {"line 4", "','", "''"}},
      {node("%a = make() {}"), {"line 4", "name", "'}'"}},
      {node("%a = make() {shape}"), {"line 4", "'='", "'}'"}},
      {node("%a = make() {shape=}"), {"line 4", "whole number", "'}'"}},
      {node("%a = make() {shape=[4}"), {"line 4", "','", "'}'"}},
      {node("%a = make() {shape=[4],"), {"line 4", "name", "''"}},
      {node("%a = make() {x=1, x=2}"), {"line 4", "'x'", "twice"}},
      {node("%a = make() {x=[1,2.0]}"), {"line 4", "list", "whole", "real"}},
      {node("%a = make() {x=nan}"), {"line 4", "finite"}},
      {node("%a = make() {x=[-inf]}"), {"line 4", "finite"}},
      {node("%a = make() {x=1e999}"), {"line 4", "number", "'1e999}'"}},
      {node("%a = make() {x=9223372036854775808}"), {"line 4", "whole number", "'9223372036854775808}'"}},
      {node("%a = make() {shape=[4]} ; forward"), {"line 4", "':'", "'; forward'"}},
      {node("%a = make() {shape=[4]} : state ; forward"), {"line 4", "'state'", "element type"}},
      {node("w@1 = copy(w@0) : f32[4] parameter ; forward"), {"line 4", "'state'", "'f32[4] parameter ; forward'"}},
      {node("%a, %b = pair(w@0) : f32[4] activation ; forward"), {"line 4", "','", "'; forward'"}},
      {node("%a = copy(w@0) : f32[4] activation in ; forward"), {"line 4", "name", "'; forward'"}},
      {node("%a = copy(w@0) : f32[4] activation using ; forward"), {"line 4", "name", "'; forward'"}},
      {node("%a = copy(w@0) : f32[4] activation workspace %s ; forward"), {"line 4", "name", "'; forward'"}},
      {node("%a = copy(w@0) : f32[4] activation"), {"line 4", "';'", "''"}},
      {node("%a = copy(w@0) : f32[4] activation ; onward"), {"line 4", "'onward'", "phase"}},
      {node("%a = copy(w@0) : f32[4] activation ; forward a b"), {"line 4", "at the end"}},
      {node("%a = copy(w@0) : f32[4] activation ; forward\r"), {"line 4", "name", "'\r'"}},
      {node("%" + std::string(201, 'a') + " = make()"), {"line 4", "'" + std::string(200, 'a') + "'", "1 to 200"}},
  });
}

}  // namespace
}  // namespace snug::testing
