// Every file of a data set is read, and each that is bad is named once.
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "data/dataset.h"
#include "data/images/cifar_source.h"
#include "data/sha256.h"
#include "pictures.h"
#include "support.h"
#include "support/messages.h"

namespace snug::data {
namespace {

struct Checked {
  CheckedFiles files;
  std::vector<std::pair<std::string, std::string>> bad;  // file name and reason
};

Checked check(const std::string& spec) {
  Checked checked;
  checked.files = check_dataset(
      spec, [&](const fs::path& file, const std::string& reason) { checked.bad.emplace_back(file.filename().string(), reason); });
  EXPECT_EQ(checked.files.bad, static_cast<std::int64_t>(checked.bad.size()));
  return checked;
}

void expect_names(const Checked& checked, const std::vector<std::string>& names) {
  std::vector<std::string> found;
  for (const auto& [file, reason] : checked.bad) {
    found.push_back(file);
    EXPECT_NE(reason.find(file), std::string::npos) << reason;
  }
  EXPECT_EQ(found, names);
}

void cut(const fs::path& path) { fs::resize_file(path, fs::file_size(path) / 2); }

TEST(CheckData, NamesEveryBadImageOfBothSplitsInOrder) {
  const TestFolder folder;
  for (int i = 0; i < 600; ++i) {
    const std::string name = std::to_string(1000 + i) + ".png";
    write_file(folder.path() / "train/cat" / name, plain_png(4, 4, 1, 2, 3));
  }
  write_file(folder.path() / "train/dog/1.png", plain_png(4, 4, 1, 2, 3));
  write_file(folder.path() / "test/dog/1.png", plain_png(4, 4, 1, 2, 3));
  write_text(folder.path() / "train/cat/notes.txt", "no image by its name, and so no bad one");
  EXPECT_EQ(check(folder.string()).files.files, 602);
  expect_names(check(folder.string()), {});
  cut(folder.path() / "train/cat/1500.png");
  write_text(folder.path() / "train/cat/1007.png", "x");
  write_text(folder.path() / "train/dog/0.jpg", "");
  cut(folder.path() / "test/dog/1.png");
  const Checked checked = check(folder.string());
  expect_names(checked, {"1007.png", "1500.png", "0.jpg", "1.png"});
  EXPECT_EQ(checked.files.files, 603);
}

TEST(CheckData, AFolderOfClassesIsReadOnce) {
  const TestFolder folder;
  for (const char* name : {"a/1.png", "a/2.png", "b/1.png"}) write_file(folder.path() / name, plain_png(4, 4, 1, 2, 3));
  write_text(folder.path() / "b/2.png", "x");
  const Checked checked = check(folder.string());
  EXPECT_EQ(checked.files.files, 4);
  expect_names(checked, {"2.png"});
}

TEST(CheckData, BatchesAreReadToTheirLastRecord) {
  const TestFolder folder;
  write_cifar(folder.path(), 20, 5);
  EXPECT_EQ(check(folder.string()).files.files, 2);
  expect_names(check(folder.string()), {});
  ByteString records = cifar_records(0, 20);
  records[19 * kCifarRecordBytes] = std::byte{10};
  write_file(folder.path() / "data_batch_1.bin", records);
  cut(folder.path() / "test_batch.bin");
  const Checked checked = check(folder.string());
  expect_names(checked, {"data_batch_1.bin", "test_batch.bin"});
  EXPECT_NE(checked.bad[0].second.find("record 19 has label 10"), std::string::npos);
}

TEST(CheckData, DownloadedBatchesAreKnownByTheirSums) {
  const TestFolder folder;
  write_cifar(folder.path(), 4, 2);
  const auto sum_of = [](const ByteString& bytes) {
    Sha256 sum;
    sum.add(bytes);
    return sum.finish();
  };
  const CifarSource source{.train = {{"data_batch_1", sum_of(cifar_records(0, 4)), 4}},
                           .test = {"test_batch", sum_of(cifar_records(4, 2)), 2}};
  std::vector<std::string> bad;
  const auto count = [&] {
    bad.clear();
    return check_cifar_source(source, folder.path(),
                              [&](const fs::path& file, const std::string&) { bad.push_back(file.filename().string()); })
        .files;
  };
  EXPECT_EQ(count(), 2);
  EXPECT_TRUE(bad.empty());
  write_file(folder.path() / "data_batch_1.bin", cifar_records(1, 4));  // right in every way but one
  fs::remove(folder.path() / "test_batch.bin");
  EXPECT_EQ(count(), 2);
  EXPECT_EQ(bad, (std::vector<std::string>{"data_batch_1.bin", "test_batch.bin"}));
}

TEST(CheckData, WhatIsNoDataSetIsRefused) {
  const TestFolder folder;
  EXPECT_NE(user_error_of([&] { check(folder.string()); }).find("neither CIFAR-10 batches nor"), std::string::npos);
  EXPECT_TRUE(support::mentions(user_error_of([&] { check("nowhere"); }), {"no such file"}));
  EXPECT_EQ(check("embedded").files.files, 0);
}

}  // namespace
}  // namespace snug::data
