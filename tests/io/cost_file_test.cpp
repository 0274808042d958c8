#include "io/cost_file.h"

#include <fstream>

#include <gtest/gtest.h>

#include "support/temporary_folder.h"
#include <snug/error.h>

namespace snug::io {
namespace {

using support::TemporaryFolder;

const CostKey kKey{.backend = "cpu", .machine = "a processor, a library 1.2", .threads = 2};

std::vector<NodeCost> two_nodes() {
  return {{.key = "a [2]", .family = "a [*]", .kernel = "k", .flops = 8, .bytes = 96, .seconds = 1.25e-6},
          {.key = "b", .family = "b", .kernel = "", .flops = 0, .bytes = 0, .seconds = 0}};
}

std::string refusal(const std::string& text, const CostKey& key = kKey) {
  try {
    parse_costs(text, key, "costs.json");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(CostFile, ReadsBackWhatWasWrittenAndMakesItsFolder) {
  const TemporaryFolder folder;
  const auto path = folder / "new" / "folder" / "costs.json";
  write_cost_file(path, kKey, two_nodes());
  EXPECT_EQ(read_cost_file(path, kKey), two_nodes());
}

TEST(CostFile, OfAnotherMachineIsRefusedWithBothNamed) {
  const TemporaryFolder folder;
  const auto path = folder / "costs.json";
  write_cost_file(path, kKey, two_nodes());
  for (const CostKey& other : {CostKey{"cuda", kKey.machine, 2}, CostKey{"cpu", "another", 2}, CostKey{"cpu", kKey.machine, 3}}) {
    try {
      read_cost_file(path, other);
      FAIL();
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(kKey.machine), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(other.machine), std::string::npos) << error.what();
    }
  }
}

TEST(CostFile, DamagedTextIsRefusedInOneSentence) {
  const TemporaryFolder folder;
  const auto path = folder / "costs.json";
  write_cost_file(path, kKey, two_nodes());
  std::ifstream file(path);
  const std::string whole((std::istreambuf_iterator<char>(file)), {});
  ASSERT_EQ(refusal(whole), "");
  // Every beginning of the file but the whole (its last byte is the line's end), and every byte changed.
  for (std::size_t length = 0; length + 1 < whole.size(); ++length) EXPECT_NE(refusal(whole.substr(0, length)), "") << length;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = '\x01';
    EXPECT_NO_THROW(refusal(changed)) << i;
  }
  for (const char* text : {"[]", "{}", "null", "7", R"({"format":"1"})", R"({"format":1,"backend":"cpu"})",
                           R"({"format":1,"backend":"cpu","machine":"a","threads":2,"nodes":7})",
                           R"({"format":1,"backend":"cpu","machine":"a","threads":2,"nodes":[{"key":7}]})"}) {
    EXPECT_NE(refusal(text).find("costs.json"), std::string::npos) << text;
  }
}

TEST(CostFile, ImpossibleFiguresAndOtherFormatsAreRefused) {
  const std::string before = R"({"format":1,"backend":"cpu","machine":"a processor, a library 1.2","threads":2,"nodes":[)";
  const std::string node = R"({"key":"a","family":"a","kernel":"k","flops":1,"bytes":1,"seconds":)";
  EXPECT_EQ(refusal(before + node + "1e-6}]}"), "");
  EXPECT_NE(refusal(before + node + "-1}]}"), "");
  EXPECT_NE(refusal(before + node + "1e999}]}"), "");
  EXPECT_NE(refusal(R"({"format":2})").find("format 2"), std::string::npos);
}

TEST(CostFile, WhatIsMeasuredAgainReplacesWhatWas) {
  std::vector<NodeCost> known = two_nodes();
  std::vector<NodeCost> now{known[0], known[0]};
  now[0].seconds = 5;
  now[1].kernel = "other";
  merge_costs(known, now);
  ASSERT_EQ(known.size(), 3U);
  EXPECT_EQ(known[0].seconds, 5);
  EXPECT_EQ(known[2].kernel, "other");
}

}  // namespace
}  // namespace snug::io
