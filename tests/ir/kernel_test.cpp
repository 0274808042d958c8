#include "ir/kernel.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test_ops.h"

namespace snug::testing {
namespace {

KernelMatch refuse(const KernelQuery& query) { return Refuse{fmt::format("not with {} threads", query.threads)}; }
KernelMatch accept(const KernelQuery& query) { return Accept{.workspace = Bytes(8) * query.threads}; }

constexpr KernelDef kOther{.name = "other", .op = "sum", .match = accept};
constexpr KernelDef kPicky{.name = "picky", .op = "copy", .match = refuse};
constexpr KernelDef kFast{.name = "fast", .op = "copy", .match = accept};
constexpr KernelDef kLast{.name = "last", .op = "copy", .match = accept};

struct Asked {
  const KernelDef* kernel;
  Accept accept;
  std::vector<std::string> refusals;
};

Asked ask(const Backend& backend) {
  Asked asked;
  const Attributes attributes;
  const KernelQuery query{
      .op = *find_test_op("copy"), .attributes = attributes, .inputs = {}, .outputs = {}, .threads = backend.threads};
  asked.kernel = backend.choose(query, asked.accept, &asked.refusals);
  return asked;
}

TEST(Backend, TheFirstKernelThatAcceptsIsChosen) {
  const Asked asked = ask({.name = "b", .kernels = {&kOther, &kPicky, &kFast, &kLast}, .threads = 3});
  EXPECT_EQ(asked.kernel, &kFast);
  EXPECT_EQ(asked.accept.workspace, Bytes(24));
  EXPECT_EQ(asked.refusals, std::vector<std::string>{"picky: not with 3 threads"});
}

TEST(Backend, NoKernelIsChosenWhenAllRefuse) {
  const Asked asked = ask({.name = "b", .kernels = {&kOther, &kPicky}});
  EXPECT_EQ(asked.kernel, nullptr);
  EXPECT_EQ(asked.refusals, std::vector<std::string>{"picky: not with 1 threads"});
}

TEST(Backend, FindsKernelsByName) {
  const Backend backend{.name = "b", .kernels = {&kOther, &kPicky}};
  EXPECT_EQ(backend.find("picky"), &kPicky);
  EXPECT_EQ(backend.find("fast"), nullptr);
}

TEST(Backend, AKernelThatDoesNotSayOtherwiseRefusesHostMemory) {
  static constexpr KernelDef kCrossing{.name = "crossing", .op = "copy", .match = accept, .takes_host = true};
  Backend backend{.name = "b", .kernels = {&kFast, &kCrossing, &kLast}};
  backend.answers = std::make_shared<KernelAnswers>();
  const Attributes attributes;
  KernelQuery query{.op = *find_test_op("copy"), .attributes = attributes, .inputs = {}, .outputs = {}};
  Accept taken;
  EXPECT_EQ(backend.choose(query, taken), &kFast);
  query.touches_host = true;
  std::vector<std::string> refusals;
  EXPECT_EQ(backend.choose(query, taken, &refusals), &kCrossing);
  EXPECT_EQ(refusals,
            std::vector<std::string>{"fast: an operand lies in host memory, and this kernel works on the device alone"});
  query.touches_host = false;
  EXPECT_EQ(backend.choose(query, taken), &kFast) << "what was answered about the other memory is not an answer here";
}

TEST(Backend, AQuerySaysWhetherAnOperandLiesInHostMemory) {
  const Program program =
      parse(with_states("%a = make() {shape=[4]} : f32[4] activation ; forward\n"
                        "%h = cross(%a) {host=1} : f32[4] activation host ; forward\n"
                        "%b = cross(%h) {host=0} : f32[4] activation ; forward\n"
                        "%c = copy(%b) : f32[4] activation ; forward\n"));
  const Section& section = program.sections[0];
  const Backend backend{.name = "b", .kernels = {}};
  std::vector<bool> touches;
  for (const Node& node : section.nodes) {
    const NodeTypes types = types_of(section, node);
    touches.push_back(backend.query(node, types).touches_host);
  }
  EXPECT_EQ(touches, (std::vector<bool>{false, true, true, false}));
}

}  // namespace
}  // namespace snug::testing
