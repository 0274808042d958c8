#include "cli/failure.h"

#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include <gtest/gtest.h>

#include "cli/output.h"
#include "support/messages.h"
#include <snug/error.h>
#include <snug/version.h>

namespace snug::cli {
namespace {

struct Told {
  int exit_code;
  std::string sentence;
};

template <typename Failure>
Told tell(const Failure& failure) {
  testing::internal::CaptureStderr();
  const int exit_code = report_failure(std::make_exception_ptr(failure));
  return {.exit_code = exit_code, .sentence = testing::internal::GetCapturedStderr()};
}

TEST(Failure, BadInputEndsWithTwo) {
  const Told told = tell(UserError("there is no model 'x'"));
  EXPECT_EQ(told.exit_code, 2);
  EXPECT_TRUE(support::mentions(told.sentence, {"model", "'x'"}));
}

TEST(Failure, WhatDoesNotFitEndsWithThree) {
  const Told told = tell(DoesNotFit("6.70 MB do not hold it; 7.10 MB would"));
  EXPECT_EQ(told.exit_code, 3);
  EXPECT_TRUE(support::mentions(told.sentence, {"6.70 MB", "hold", "7.10 MB"}));
}

TEST(Failure, ADefectAsksForAReport) {
  for (const Told& told : {tell(InternalError("a broken rule")), tell(std::runtime_error("a broken rule"))}) {
    EXPECT_EQ(told.exit_code, 1);
    EXPECT_TRUE(support::mentions(told.sentence, {"internal error", "a broken rule", std::string(kVersion)}));
  }
}

TEST(Failure, AnythingElseThrownIsADefectToo) {
  const Told told = tell(42);
  EXPECT_EQ(told.exit_code, 1);
  EXPECT_TRUE(told.sentence.starts_with("snug: internal error; ")) << told.sentence;
}

TEST(Failure, ALackOfMemoryIsNoDefect) {
  const Told told = tell(std::bad_alloc());
  EXPECT_EQ(told.exit_code, 1);
  EXPECT_TRUE(support::mentions(told.sentence, {"memory", "plan"}));
}

TEST(Failure, AThreadThatTheSystemRefusesIsNoDefect) {
  const Told told = tell(std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again)));
  EXPECT_EQ(told.exit_code, 1);
  EXPECT_EQ(told.sentence.find("defect"), std::string::npos) << told.sentence;
  EXPECT_NE(tell(std::system_error(std::make_error_code(std::errc::io_error))).sentence.find("defect"), std::string::npos);
}

TEST(Failure, AReaderThatLeftIsNoFailure) {
  const Told told = tell(ReaderGone());
  EXPECT_EQ(told.exit_code, 0);
  EXPECT_EQ(told.sentence, "");
}

TEST(Failure, AStopThatWasAskedForEndsAsTheSignalWouldHave) {
  const Told quiet = tell(Interrupted(2));
  EXPECT_EQ(quiet.exit_code, 130);
  EXPECT_EQ(quiet.sentence, "");
  const Told said = tell(Interrupted(15, "evaluation was interrupted; run it again"));
  EXPECT_EQ(said.exit_code, 143);
  EXPECT_TRUE(support::mentions(said.sentence, {"evaluation", "interrupted"}));
}

TEST(Failure, OnlyBadInputAndWhatDoesNotFitArePrintedAsJson) {
  const auto printed = [](const std::exception_ptr& failure) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    report_failure(failure, FailureJson::printed);
    testing::internal::GetCapturedStderr();
    return testing::internal::GetCapturedStdout();
  };
  EXPECT_EQ(printed(std::make_exception_ptr(UserError("no"))),
            "{\"error\":{\"code\":2,\"kind\":\"bad_input\",\"message\":\"no\"}}\n");
  EXPECT_NE(printed(std::make_exception_ptr(DoesNotFit("no", 7))).find("\"least_bytes\":7"), std::string::npos);
  EXPECT_EQ(printed(std::make_exception_ptr(DoesNotFit("no"))).find("least_bytes"), std::string::npos);
  EXPECT_EQ(printed(std::make_exception_ptr(InternalError("no"))), "");
  EXPECT_EQ(printed(std::make_exception_ptr(Interrupted(2))), "");
}

TEST(Failure, NoControlCharacterReachesTheTerminal) {
  EXPECT_TRUE(support::mentions(tell(UserError("there is no model '\x1B[2J\xFF'")).sentence, {"model", "'?[2J?'"}));
}

TEST(Failure, ASentenceIsOneLine) { EXPECT_EQ(tell(UserError("first\nsecond")).sentence, "snug: first second\n"); }

}  // namespace
}  // namespace snug::cli
