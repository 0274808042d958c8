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

}  // namespace
}  // namespace snug::testing
