#include "data/external_sort.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/philox.h"
#include "data/file_index.h"

namespace snug::data {
namespace {

std::vector<std::string> random_names(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    const PhiloxBlock random = philox(1, i, 0);
    names.push_back(std::to_string(random.word[0]) + std::string(random.word[1] % 60, 'x') + ".png");
  }
  return names;
}

std::vector<std::string> sorted_by(ExternalSort& sort, const std::vector<std::string>& names) {
  for (const std::string& name : names) sort.add(name);
  EXPECT_EQ(sort.size(), static_cast<std::int64_t>(names.size()));
  std::vector<std::string> result;
  sort.drain([&](std::string_view name) { result.emplace_back(name); });
  EXPECT_EQ(sort.size(), 0);
  return result;
}

// From no run on disk, over one merge, to merges of merges: 1 KiB holds about fifteen of these names.
TEST(ExternalSort, SortsHoweverOftenItMustSpill) {
  for (const std::size_t count : {0U, 1U, 2U, 15U, 16U, 100U, 300U, 5000U}) {
    std::vector<std::string> names = random_names(count);
    ExternalSort sort(1024);
    const std::vector<std::string> result = sorted_by(sort, names);
    std::sort(names.begin(), names.end());
    EXPECT_EQ(result, names) << count;
  }
}

TEST(ExternalSort, CanBeUsedAgain) {
  ExternalSort sort(1024);
  sorted_by(sort, random_names(500));
  EXPECT_EQ(sorted_by(sort, {"b", "a"}), (std::vector<std::string>{"a", "b"}));
}

TEST(ExternalSort, TakesNamesLargerThanItsRuns) {
  std::vector<std::string> names;
  for (char c = 'z'; c >= 'a'; --c) names.emplace_back(ExternalSort::kLongestName, c);
  ExternalSort sort(100);
  const std::vector<std::string> result = sorted_by(sort, names);
  std::reverse(names.begin(), names.end());
  EXPECT_EQ(result, names);
}

TEST(ExternalSort, OrderIsThatOfBytes) {
  ExternalSort sort;
  EXPECT_EQ(sorted_by(sort, {"\xC3\xA4", "z", "B", "a", "10", "9"}),
            (std::vector<std::string>{"10", "9", "B", "a", "z", "\xC3\xA4"}));
}

TEST(FileIndex, GivesBackWhatWasAppended) {
  FileIndex index;
  const std::vector<std::string> names = random_names(3000);
  for (std::size_t i = 0; i < names.size(); ++i) index.append(names[i], static_cast<std::int32_t>(i % 7));
  index.finish();
  ASSERT_EQ(index.size(), 3000);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const FileIndex::Entry entry = index.read(static_cast<std::int64_t>(names.size() - 1 - i));
    EXPECT_EQ(entry.name, names[names.size() - 1 - i]);
    EXPECT_EQ(entry.label, static_cast<std::int32_t>((names.size() - 1 - i) % 7));
  }
}

}  // namespace
}  // namespace snug::data
