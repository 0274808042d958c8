#include "base/child_process.h"

#include <csignal>
#include <cstdlib>
#include <unistd.h>

#include <gtest/gtest.h>

#include <snug/error.h>

namespace snug {
namespace {

TEST(ChildProcess, ReturnsWhatItsWorkReturned) {
  const std::string large(1 << 20, 'x');  // more than a pipe holds
  EXPECT_EQ(run_in_child([&] { return large; }), large);
  EXPECT_EQ(run_in_child([] { return std::string(); }), "");
}

TEST(ChildProcess, LeavesTheParentAsItWas) {
  int changed = 0;
  const pid_t parent = getpid();
  EXPECT_EQ(run_in_child([&] {
              ++changed;
              return std::string(getpid() == parent ? "here" : "elsewhere");
            }),
            "elsewhere");
  EXPECT_EQ(changed, 0);
}

template <typename Failure>
std::string sentence_of(const std::function<std::string()>& work) {
  try {
    run_in_child(work);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "not thrown";
}

TEST(ChildProcess, FailuresComeOutAsTheyWere) {
  EXPECT_EQ(sentence_of<UserError>([]() -> std::string { throw UserError("bad input"); }), "bad input");
  EXPECT_EQ(sentence_of<DoesNotFit>([]() -> std::string { throw DoesNotFit("too large"); }), "too large");
  EXPECT_EQ(sentence_of<InternalError>([]() -> std::string { throw InternalError("broken"); }), "broken");
  EXPECT_EQ(sentence_of<InternalError>([]() -> std::string { throw std::runtime_error("other"); }), "other");
}

TEST(ChildProcess, ADeathIsSaid) {
  const auto die_of = [](int signal) {
    return [signal]() -> std::string {
      std::raise(signal);
      return "";
    };
  };
  EXPECT_NE(sentence_of<DoesNotFit>(die_of(SIGKILL)).find("memory"), std::string::npos);
  EXPECT_NE(sentence_of<InternalError>(die_of(SIGTERM)).find("Terminated"), std::string::npos);
}

}  // namespace
}  // namespace snug
