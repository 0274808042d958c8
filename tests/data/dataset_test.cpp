#include "data/dataset.h"

#include "data/images/get_cifar10.h"
#include "pictures.h"
#include "support.h"

namespace snug::data {
namespace {

void expect_has(const std::string& text, const std::string& part) { EXPECT_NE(text.find(part), std::string::npos) << text; }

std::string open_error(const std::string& spec, const OpenOptions& options = {}) {
  return user_error_of([&] { open_dataset(spec, options); });
}

TEST(OpenDataset, EmbeddedNeedsNothing) { EXPECT_EQ(open_dataset("embedded", {})->description().name, "embedded"); }

TEST(OpenDataset, Cifar10IsFoundInTheDataFolder) {
  const TestFolder folder;
  write_cifar(folder.path() / "cifar10", 4, 2);
  const ScopedVariable variable("SNUG_DATA_DIR", folder.path().c_str());
  const auto dataset = open_dataset("cifar10", {});
  EXPECT_EQ(dataset->description().name, "cifar10");
  EXPECT_EQ(dataset->description().train_examples, 4);
}

TEST(OpenDataset, FolderOfCifar10FollowsTheEnvironment) {
  const ScopedVariable data("SNUG_DATA_DIR", nullptr);
  const ScopedVariable home("HOME", "/h");
  {
    const ScopedVariable cache("XDG_CACHE_HOME", "/c");
    EXPECT_EQ(cifar10_folder(), "/c/snug/cifar10");
    const ScopedVariable data_again("SNUG_DATA_DIR", "/d");
    EXPECT_EQ(cifar10_folder(), "/d/cifar10");
  }
  for (const char* ignored : {"", "relative", static_cast<const char*>(nullptr)}) {
    const ScopedVariable cache("XDG_CACHE_HOME", ignored);
    EXPECT_EQ(cifar10_folder(), "/h/.cache/snug/cifar10");
    const ScopedVariable no_home("HOME", nullptr);
    expect_has(user_error_of([] { cifar10_folder(); }), "set SNUG_DATA_DIR");
  }
}

TEST(OpenDataset, MissingCifar10SaysHowToGetIt) {
  const TestFolder folder;
  const ScopedVariable variable("SNUG_DATA_DIR", folder.path().c_str());
  expect_has(open_error("cifar10"), "run `snug data get cifar10`");
}

TEST(OpenDataset, PathIsToldApartByWhatIsInIt) {
  const TestFolder folder;
  write_cifar(folder.path() / "batches", 4, 2);
  EXPECT_EQ(open_dataset((folder.path() / "batches").string(), {})->description().classes, 10);
  write_file(folder.path() / "images/train/a/1.png", plain_png(3, 3, 1, 2, 3));
  write_file(folder.path() / "images/test/a/1.png", plain_png(3, 3, 1, 2, 3));
  const std::string images = (folder.path() / "images").string();
  EXPECT_EQ(open_dataset(images, {})->description().width, 32);
  EXPECT_EQ(open_dataset(images, {.image_size = 7})->description().width, 7);
  EXPECT_EQ(open_dataset(images, {})->description().name, images);
}

TEST(OpenDataset, WhatIsNoDataIsRefused) {
  const TestFolder folder;
  expect_has(open_error((folder.path() / "nothing").string()),
             "there is no such file or folder; give embedded, cifar10 or the path");
  expect_has(open_error(""), "there is no such file or folder");
  expect_has(open_error("/dev/null"), "is neither a folder nor a file");
  fs::create_symlink("loop", folder.path() / "loop");
  expect_has(open_error((folder.path() / "loop").string()), "Too many levels of symbolic links");
  fs::create_directory(folder.path() / "empty");
  expect_has(open_error((folder.path() / "empty").string()), "neither CIFAR-10 batches nor a folder of images");
}

TEST(OpenDataset, SizesThatCannotBeAreRefused) {
  expect_has(open_error("embedded", {.image_size = 64}), "cannot be resized to 64x64");
  EXPECT_EQ(open_dataset("embedded", {.image_size = 32})->description().width, 32);
  expect_has(open_error("cifar10", {.image_size = 64}), "cannot be resized to 64x64");
  expect_has(open_error("embedded", {.image_size = -1}), "1 to 4096");
  expect_has(open_error("embedded", {.image_size = 5000}), "1 to 4096");
}

}  // namespace
}  // namespace snug::data
