#include "cli/progress.h"

#include <limits>

#include <gtest/gtest.h>

namespace snug::cli {
namespace {

TEST(Progress, LossThatIsNoNumberIsSaidInWords) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(format_loss(0.12345), "0.1235");
  EXPECT_EQ(format_loss(kNan), "not a number");
  EXPECT_EQ(format_loss(-kNan), "not a number");
  EXPECT_EQ(format_loss(std::numeric_limits<double>::infinity()), "infinite");
  EXPECT_EQ(status_text({.step = 5, .total_steps = 10, .loss = -kNan}, ""), "step  5/10  loss not a number  accuracy   0%");
}

}  // namespace
}  // namespace snug::cli
