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

TEST(Printable, WhatATerminalWouldObeyIsNotShown) {
  EXPECT_EQ(without_controls("two\nlines"), "two\nlines");
  EXPECT_EQ(without_controls("\x1B[31mred\r\t\b"), "?[31mred???");
  EXPECT_EQ(without_controls(std::string_view("a\0b", 3)), "a?b");
  EXPECT_EQ(without_controls("\xC2\x9B"
                             "31m \xC2\xA0"),
            "?31m \xC2\xA0")
      << "control characters of two bytes";
  EXPECT_EQ(without_controls("\xE2\x94\x82 \xC3\xA4 \xF0\x9F\x98\x80"), "\xE2\x94\x82 \xC3\xA4 \xF0\x9F\x98\x80");
  EXPECT_EQ(without_controls("\x9B"
                             "31m \xFF \xC0\x80 \xED\xA0\x80 \xE2\x94"),
            "?31m ? ?? ??? ??")
      << "not UTF-8";
}

TEST(Printable, CutsBetweenCharacters) {
  EXPECT_EQ(printable("abcdef", 3), "abc...");
  EXPECT_EQ(printable("ab\xC3\xA4z", 3), "ab...");
  EXPECT_EQ(printable("ab\xC3\xA4z", 4), "ab\xC3\xA4...");
  EXPECT_EQ(printable("ab\xC3\xA4", 4), "ab\xC3\xA4");
}

}  // namespace

}  // namespace snug
