#include "cli/progress.h"

#include <limits>

#include <gtest/gtest.h>

#include "ops/ops.h"

namespace snug::cli {
namespace {

TEST(Progress, LossThatIsNoNumberIsSaidInWords) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(format_loss(0.12345), "0.1235");
  EXPECT_EQ(format_loss(kNan), "not a number");
  EXPECT_EQ(format_loss(-kNan), "not a number");
  EXPECT_EQ(format_loss(std::numeric_limits<double>::infinity()), "infinite");
  EXPECT_EQ(status_text({.step = 5, .total_steps = 10, .loss = -kNan}, "", *ops::softmax_cross_entropy.loss),
            "step  5/10  loss not a number  accuracy   0%");
}

TEST(Progress, TheLossNamesWhatIsShown) {
  const train::StepReport report{
      .step = 5, .total_steps = 10, .loss = 0.5, .score = 0.25, .units_per_second = 1200, .seconds_left = 62};
  EXPECT_EQ(status_text(report, "2 MB of 3 MB", *ops::softmax_cross_entropy.loss),
            "step  5/10  loss 0.5000  accuracy  25%  1200 images/s  2 MB of 3 MB  1:02 left");
  const LossFacts perplexity{.metrics = {"nll", {}}, .unit = "tokens"};
  EXPECT_EQ(status_text(report, "2 MB of 3 MB", perplexity), "step  5/10  nll 0.5000  1200 tokens/s  2 MB of 3 MB  1:02 left");
  EXPECT_EQ(describe_metric(perplexity, 0, 0.5, "test "), "test nll 0.5000");
  EXPECT_EQ(describe_metric(*ops::softmax_cross_entropy.loss, 1, 0.8125, "test "), "test accuracy 81.25%");
}

}  // namespace
}  // namespace snug::cli
