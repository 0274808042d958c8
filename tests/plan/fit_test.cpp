#include "plan/fit.h"

#include <gtest/gtest.h>

#include "frontend/graph_builder.h"
#include "frontend/zoo.h"
#include "support/accepting_backend.h"
#include "support/messages.h"
#include <snug/error.h>

namespace snug::testing {
namespace {

FitRequest small_cnn_request(std::int64_t batch) {
  return {.model = [](std::int64_t microbatch) { return frontend::build_zoo_model("small-cnn", {.batch = microbatch}); },
          .options = {.batch = batch}};
}

Program no_norm(std::int64_t microbatch) {
  frontend::GraphBuilder b("plain", microbatch);
  const ValueId x = b.relu("relu", b.conv2d("conv", b.images({.height = 8, .width = 8}), {.out_channels = 8, .padding = 1}));
  b.softmax_cross_entropy(b.linear("fc", b.global_avg_pool("pool", x), 10));
  return std::move(b).finish();
}

std::string refusal(const FitRequest& request, const Backend& backend) {
  return support::message_of<DoesNotFit>([&] { fit(request, backend); });
}

class FitTest : public ::testing::Test {
 protected:
  AcceptingBackend backend_;
};

TEST_F(FitTest, WithoutABudgetTheWholeBatchIsOneMicrobatch) {
  const Fit found = fit(small_cnn_request(40), backend_);
  EXPECT_EQ(found.plan.program.microbatch, 40);
  EXPECT_EQ(found.plan.program.batch, 40);
  EXPECT_EQ(found.plan.planned_peak_bytes, found.plain_peak_bytes);
}

TEST_F(FitTest, ABudgetIsKeptByTheFastestPlanThatFits) {
  FitRequest request = small_cnn_request(40);
  const Bytes whole = fit(request, backend_).plan.planned_peak_bytes;
  request.budget = whole;
  EXPECT_EQ(fit(request, backend_).plan.program.microbatch, 40);
  request.budget = whole - Bytes(1);
  const Fit less = fit(request, backend_);
  EXPECT_EQ(less.plan.program.batch, 40);
  EXPECT_LE(less.plan.planned_peak_bytes, *request.budget);
  EXPECT_EQ(less.plain_peak_bytes, whole);
  const Frontier frontier = find_frontier(request, backend_);
  EXPECT_EQ(less.point.seconds, frontier.points[frontier.points.size() - 2].seconds);
}

TEST_F(FitTest, TheBudgetThatARefusalNamesIsEnoughAndOneByteLessIsNot) {
  FitRequest request = small_cnn_request(40);
  request.budget = Bytes(1000);
  const std::string message = refusal(request, backend_);
  const std::string before = "the smallest budget that it fits is ";
  const std::size_t at = message.find(before);
  ASSERT_NE(at, std::string::npos) << message;
  const Bytes least(std::stoll(message.substr(at + before.size())));
  request.budget = least;
  EXPECT_EQ(fit(request, backend_).plan.planned_peak_bytes, least);
  request.budget = least - Bytes(1);
  EXPECT_EQ(refusal(request, backend_).substr(0, 11), "small-cnn a") << "one byte less must be refused";
}

// A gradient is complete in backward only where a step is one microbatch.
TEST_F(FitTest, AFusedUpdateThatIsGivenKeepsTheBatchWhole) {
  FitRequest request = small_cnn_request(40);
  request.given.fuse_update = true;
  const Bytes whole = fit(request, backend_).plan.planned_peak_bytes;
  request.budget = Bytes(whole.count() * 9 / 10);
  const Fit found = fit(request, backend_);
  EXPECT_EQ(found.plan.program.microbatch, 40);
  EXPECT_EQ(found.plan.methods.fuse_update, true);
  request.budget = Bytes(1000);
  EXPECT_NE(refusal(request, backend_).find("leave out --fuse-update"), std::string::npos);
}

TEST_F(FitTest, BatchNormKeepsMicrobatchesFromBecomingTooSmall) {
  FitRequest request = small_cnn_request(40);
  request.budget = Bytes(1000);
  EXPECT_NE(refusal(request, backend_).find("with microbatches of 10 "), std::string::npos) << refusal(request, backend_);
  request.min_microbatch = 2;
  EXPECT_NE(refusal(request, backend_).find("with microbatches of 2 "), std::string::npos) << refusal(request, backend_);
  request.model = no_norm;
  EXPECT_NE(refusal(request, backend_).find("with microbatches of 1 "), std::string::npos) << refusal(request, backend_);
}

TEST_F(FitTest, AGivenMicrobatchIsObeyedOrRefused) {
  FitRequest request = small_cnn_request(40);
  request.given.microbatch = 7;
  EXPECT_EQ(fit(request, backend_).plan.program.microbatch, 7);
  request.given.microbatch = 40;
  request.budget = Bytes(1000);
  const std::string message = refusal(request, backend_);
  EXPECT_TRUE(support::mentions(message, {"smallest", "--microbatch", "40"})) << message;
  EXPECT_NE(message.find("leave out --microbatch"), std::string::npos) << message;
  request.given.microbatch = 41;
  EXPECT_THROW(fit(request, backend_), UserError);
}

FitRequest grouped_request(std::int64_t batch, std::int64_t group) {
  return {.model =
              [group](std::int64_t microbatch) {
                return frontend::build_zoo_model("small-cnn", {.batch = microbatch, .statistics_group = group});
              },
          .options = {.batch = batch},
          .given = {.statistics_group = group}};
}

std::string user_error(const FitRequest& request, const Backend& backend) {
  return support::message_of<UserError>([&] { fit(request, backend); });
}

TEST_F(FitTest, WithStatisticsInGroupsMicrobatchesAreMultiplesOfTheGroup) {
  FitRequest request = grouped_request(40, 6);  // not split, the last group has 4
  request.options.update.clip_norm = 1;         // no update in backward, which would take less without a split
  request.given.checkpoint = CheckpointStrategy{};
  const Fit whole = fit(request, backend_);
  EXPECT_EQ(whole.plan.program.microbatch, 40);
  request.budget = whole.plan.planned_peak_bytes - Bytes(1);
  const std::int64_t split = fit(request, backend_).plan.program.microbatch;
  EXPECT_LT(split, 40);
  EXPECT_EQ(split % 6, 0);
  request.budget = Bytes(1000);
  const std::string message = refusal(request, backend_);
  EXPECT_NE(message.find("with microbatches of 6 "), std::string::npos) << message;
  EXPECT_NE(message.find("--statistics-group (now 6)"), std::string::npos) << message;
  request.budget.reset();
  request.given.microbatch = 12;
  EXPECT_EQ(fit(request, backend_).plan.program.microbatch, 12);
}

TEST_F(FitTest, WhatDoesNotSplitIntoGroupsIsRefused) {
  FitRequest request = grouped_request(40, 6);
  request.given.microbatch = 10;
  EXPECT_TRUE(support::mentions(user_error(request, backend_), {"microbatch of 10", "groups of 6"}));
  EXPECT_TRUE(support::mentions(user_error(grouped_request(40, 41), backend_), {"group", "41", "1", "40"}));
  request = grouped_request(40, 5);
  request.model = no_norm;
  EXPECT_TRUE(support::mentions(user_error(request, backend_), {"'plain'", "no batch norm", "--statistics-group"}));
}

TEST_F(FitTest, ARefusalNamesTheRungThatWouldHelp) {
  FitRequest request = small_cnn_request(40);
  request.budget = Bytes(1000);
  EXPECT_NE(refusal(request, backend_).find("--min-microbatch (now 10; about "), std::string::npos) << refusal(request, backend_);
  request.allowed = Allowance::exact_only();
  EXPECT_NE(refusal(request, backend_).find("add microbatch to --allow"), std::string::npos) << refusal(request, backend_);
  request.model = no_norm;
  EXPECT_NE(refusal(request, backend_).find("add reassociated to --allow"), std::string::npos) << refusal(request, backend_);
  request.allowed = {};
  EXPECT_TRUE(support::mentions(refusal(request, backend_), {"smaller", "model"})) << refusal(request, backend_);
  request = small_cnn_request(40);
  request.budget = Bytes(1000);
  request.given.checkpoint = CheckpointStrategy{};
  EXPECT_NE(refusal(request, backend_).find("leave out --checkpoint"), std::string::npos) << refusal(request, backend_);
}

}  // namespace
}  // namespace snug::testing
