#include "base/printable.h"

#include <gtest/gtest.h>

namespace snug {

namespace {

TEST(Printable, LeavesPlainTextAlone) {
  EXPECT_EQ(printable("conv1.weight"), "conv1.weight");
  EXPECT_EQ(in_quotes("conv1.weight"), "'conv1.weight'");
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, ReplacesControlCharacters) { EXPECT_EQ(printable("a\nb\x7F\x01"), "a?b??"); }

TEST(Printable, CutsBetweenCharacters) {
  EXPECT_EQ(printable("abcdef", 3), "abc...");
  EXPECT_EQ(printable("ab\xC3\xA4z", 3), "ab...");
  EXPECT_EQ(printable("ab\xC3\xA4z", 4), "ab\xC3\xA4...");
  EXPECT_EQ(printable("ab\xC3\xA4", 4), "ab\xC3\xA4");
}

}  // namespace

}  // namespace snug
