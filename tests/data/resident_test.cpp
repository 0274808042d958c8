// What is resident must not grow with the number of examples.
#include <cstdint>
#include <fstream>
#include <malloc.h>
#include <memory>
#include <string>

#include "data/dataset.h"
#include "data/stream.h"
#include "pictures.h"
#include "support.h"
#include "support/sanitized.h"
#include "text/small_bpe.h"

namespace snug::data {
namespace {

std::int64_t resident_bytes() {
  ::malloc_trim(0);
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    if (word != "VmRSS:") continue;
    std::int64_t kilobytes = 0;
    file >> kilobytes;
    return kilobytes * 1024;
  }
  return 0;
}

// The resident bytes while a stream over the opened set is at its end.
std::int64_t resident_after_an_epoch(const fs::path& path, const OpenOptions& options, std::int64_t& examples) {
  const auto dataset = open_dataset(path.string(), options);
  Stream stream(*dataset, Split::train, 50, {.shuffle = true});
  while (stream.next()) {
  }
  examples = dataset->description().train_examples;
  return resident_bytes();
}

// Both sets are read once before, so that code and buffers are there already.
void expect_no_growth(const fs::path& small, const fs::path& large, std::int64_t least_bytes_if_held,
                      const OpenOptions& options = {}) {
  if (support::kSanitized) GTEST_SKIP() << "a sanitizer's heap is not measured";
  std::int64_t few = 0;
  std::int64_t many = 0;
  resident_after_an_epoch(small, options, few);
  const std::int64_t with_few = resident_after_an_epoch(small, options, few);
  const std::int64_t with_many = resident_after_an_epoch(large, options, many);
  ASSERT_GT(many, 8 * few);
  EXPECT_LT(with_many - with_few, 256 * 1024);
  EXPECT_GT(least_bytes_if_held, 512 * 1024) << "the test would not notice";
}

TEST(Resident, CifarDoesNotGrowWithTheNumberOfRecords) {
  const TestFolder folder;
  write_cifar(folder.path() / "small", 300, 10);
  write_cifar(folder.path() / "large", 3000, 10);
  expect_no_growth(folder.path() / "small", folder.path() / "large", 2700 * kCifarRecordBytes);
}

// Long names, all links to one small picture: held in memory they would take two megabytes.
TEST(Resident, ImageFolderDoesNotGrowWithTheNumberOfFiles) {
  const TestFolder folder;
  const fs::path picture = folder.path() / "picture";
  write_file(picture, plain_png(4, 4, 1, 2, 3));
  const auto fill = [&](const std::string& name, int files) {
    for (int i = 0; i < files; ++i) {
      const fs::path target =
          folder.path() / name / (i % 2 == 0 ? "even" : "odd") / (std::string(140, 'n') + std::to_string(i) + ".png");
      if (i < 2) fs::create_directories(target.parent_path());
      fs::create_hard_link(picture, target);
    }
  };
  fill("small", 1500);
  fill("large", 15'000);
  expect_no_growth(folder.path() / "small", folder.path() / "large", 13'500 * 140);
}

// Read as bytes where they lie; with merges, encoded into a temporary file.
TEST(Resident, TextDoesNotGrowWithItsLength) {
  const TestFolder folder;
  for (const auto& [name, times] : {std::pair("small", 40), std::pair("large", 500)}) {
    std::string text;
    for (int i = 0; i < 1000; ++i) text += "word" + std::to_string(i % 100) + (i % 10 == 9 ? "\n" : " ");
    std::ofstream file(folder.path() / (std::string(name) + ".txt"), std::ios::binary);
    for (int i = 0; i < times; ++i) file << text;
  }
  write_text(folder.path() / "bpe/tokenizer.json", tokenizer_json({{"w", "o"}, {"wo", "r"}, {"wor", "d"}}).dump());
  for (const std::string& tokenizer : {std::string("bytes"), (folder.path() / "bpe").string()}) {
    expect_no_growth(folder.path() / "small.txt", folder.path() / "large.txt", 460 * 6'900, {.text = {.tokenizer = tokenizer}});
  }
}

}  // namespace
}  // namespace snug::data
