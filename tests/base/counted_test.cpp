#include "base/counted.h"

#include <gtest/gtest.h>

namespace snug {
namespace {

TEST(Counted, OneIsSingularAndEverythingElseIsNot) {
  EXPECT_EQ(counted(1, "step"), "1 step");
  EXPECT_EQ(counted(0, "step"), "0 steps");
  EXPECT_EQ(counted(2U, "step"), "2 steps");
  EXPECT_EQ(counted(1, "class", "classes"), "1 class");
  EXPECT_EQ(counted(10, "class", "classes"), "10 classes");
}

}  // namespace
}  // namespace snug
