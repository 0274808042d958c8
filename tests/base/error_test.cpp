#include "base/error.h"

#include <string>

#include <gtest/gtest.h>

#include "base/strong_id.h"

namespace snug {
namespace {

TEST(Check, NamesTheMessageTheFileAndTheCondition) {
  const int buffers = 3;
  try {
    SNUG_CHECK(buffers == 4, "found {} buffers", buffers);
    FAIL() << "the check passed";
  } catch (const InternalError& error) {
    const std::string what = error.what();
    EXPECT_TRUE(what.starts_with("found 3 buffers (")) << what;
    EXPECT_NE(what.find("error_test.cpp:"), std::string::npos) << what;
    EXPECT_TRUE(what.ends_with(": check 'buffers == 4' failed)")) << what;
  }
}

TEST(Check, ShowsOnlyThePathInsideTheSourceTree) {
  try {
    detail::check_failed("x", "/any/where/src/plan/plan.cpp", 7, "broken");
    FAIL() << "nothing was thrown";
  } catch (const InternalError& error) {
    EXPECT_STREQ(error.what(), "broken (src/plan/plan.cpp:7: check 'x' failed)");
  }
}

TEST(Check, FormatsItsMessageOnlyWhenItFails) {
  int formatted = 0;
  const auto text = [&] {
    ++formatted;
    return "x";
  };
  SNUG_CHECK(true, "{}", text());
  EXPECT_EQ(formatted, 0);
}

TEST(StrongId, IsNoneUntilItIsGivenAnIndex) {
  using Id = StrongId<struct AnyTag>;
  EXPECT_FALSE(Id().valid());
  EXPECT_EQ(Id(), Id::none());
  EXPECT_TRUE(Id(0).valid());
  EXPECT_EQ(Id(7).index(), 7U);
  EXPECT_LT(Id(7), Id(8));
  EXPECT_LT(Id(8), Id::none());  // so that the largest of several ids of which one is none is none
}

}  // namespace
}  // namespace snug
