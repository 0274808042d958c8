#include "data/images/cifar.h"

#include <cmath>
#include <sys/stat.h>
#include <vector>

#include "support.h"
#include "support/messages.h"

namespace snug::data {
namespace {

TEST(Cifar, PlanesBecomePixels) {
  const TestFolder folder;
  write_cifar(folder.path(), 20, 5);
  const auto dataset = open_cifar(folder.path(), "x");
  const Description& description = dataset->description();
  EXPECT_EQ(description.train_examples, 20);
  EXPECT_EQ(description.test_examples, 5);
  EXPECT_EQ(description.channels, 3);
  EXPECT_EQ(description.height, 32);
  EXPECT_EQ(description.width, 32);
  ByteString pixels(description.image_bytes());
  for (const std::size_t index : {0U, 19U, 22U}) {
    const bool train = index < 20;
    const auto label =
        read_image(*dataset, train ? Split::train : Split::test, static_cast<std::int64_t>(train ? index : index - 20), pixels);
    EXPECT_EQ(label, static_cast<std::int32_t>(index % 10));
    for (std::size_t p = 0; p < kCifarPlane; ++p) {
      for (std::size_t c = 0; c < 3; ++c) ASSERT_EQ(pixels[3 * p + c], cifar_value(index, c, p));
    }
  }
}

TEST(Cifar, BatchesComeInTheOrderOfTheirNumbers) {
  const TestFolder folder;
  write_file(folder.path() / "data_batch_10.bin", cifar_records(5, 3));
  write_file(folder.path() / "data_batch_9.bin", cifar_records(1, 4));
  write_file(folder.path() / "data_batch_2.bin", cifar_records(0, 1));
  write_file(folder.path() / "data_batch_x.bin", cifar_records(7, 1));  // no number: not a batch
  write_file(folder.path() / "test_batch.bin", cifar_records(0, 1));
  const auto dataset = open_cifar(folder.path(), "x");
  ASSERT_EQ(dataset->description().train_examples, 8);
  ByteString pixels(dataset->description().image_bytes());
  for (std::int64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(read_image(*dataset, Split::train, i, pixels), i);
    EXPECT_EQ(pixels[0], cifar_value(static_cast<std::size_t>(i), 0, 0));
  }
}

TEST(Cifar, ClassNamesComeFromTheMetaFile) {
  const TestFolder folder;
  write_cifar(folder.path(), 10, 1);
  EXPECT_EQ(open_cifar(folder.path(), "x")->description().class_names[3], "3") << "without one, numbers";
  write_text(folder.path() / "batches.meta.txt", "airplane\r\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n");
  const auto dataset = open_cifar(folder.path(), "x");
  EXPECT_EQ(dataset->description().classes, 10);
  EXPECT_EQ(dataset->description().class_names[0], "airplane");
  EXPECT_EQ(dataset->description().class_names[9], "truck");
}

TEST(Cifar, MeanAndDeviationAreThoseOfTheTrainingRecords) {
  const TestFolder folder;
  write_cifar(folder.path(), 12, 3);
  const auto dataset = open_cifar(folder.path(), "x");
  for (std::size_t c = 0; c < 3; ++c) {
    double sum = 0;
    double squares = 0;
    for (std::size_t i = 0; i < 12; ++i) {
      for (std::size_t p = 0; p < kCifarPlane; ++p) {
        const double value = std::to_integer<int>(cifar_value(i, c, p));
        sum += value;
        squares += value * value;
      }
    }
    const double count = 12.0 * kCifarPlane;
    EXPECT_NEAR(dataset->description().mean[c], sum / count, 1e-9);
    EXPECT_NEAR(dataset->description().std[c], std::sqrt(squares / count - sum / count * sum / count), 1e-9);
  }
}

TEST(Cifar, DeviationOfOneColorIsOneAndNotZero) {
  const TestFolder folder;
  const ByteString black(kCifarRecordBytes, std::byte{0});
  write_file(folder.path() / "data_batch_1.bin", black);
  write_file(folder.path() / "test_batch.bin", black);
  EXPECT_EQ(open_cifar(folder.path(), "x")->description().std, (std::vector<double>{1, 1, 1}));
}

// Everything that can be wrong with the files, and a word that the sentence must have beside the file's name.
TEST(Cifar, BadFilesAreRefusedByName) {
  const auto refused = [](const char* file, const char* word, const std::function<void(const fs::path&)>& damage) {
    const TestFolder folder;
    write_cifar(folder.path(), 4, 2);
    damage(folder.path());
    const std::string error = user_error_of([&] { open_cifar(folder.path(), "x"); });
    EXPECT_NE(error.find(file), std::string::npos) << error;
    EXPECT_NE(error.find(word), std::string::npos) << error;
  };
  refused("data_batch_1.bin", "whole number", [](const fs::path& f) { fs::resize_file(f / "data_batch_1.bin", 4 * 3073 - 1); });
  refused("data_batch_1.bin", "whole number", [](const fs::path& f) { write_text(f / "data_batch_1.bin", "hello"); });
  refused("data_batch_1.bin", "empty", [](const fs::path& f) { write_text(f / "data_batch_1.bin", ""); });
  refused("test_batch.bin", "whole number", [](const fs::path& f) { fs::resize_file(f / "test_batch.bin", 3074); });
  refused("test_batch.bin", "cannot be read", [](const fs::path& f) { fs::remove(f / "test_batch.bin"); });
  refused("data_batch_1.bin", "to train on", [](const fs::path& f) { fs::remove(f / "data_batch_1.bin"); });
  refused("data_batch_1.bin", "label 10", [](const fs::path& f) {
    ByteString records = cifar_records(0, 2);
    records[3073] = std::byte{10};
    write_file(f / "data_batch_1.bin", records);
  });
  refused("data_batch_2.bin", "cannot be read",
          [](const fs::path& f) { fs::create_symlink("data_batch_2.bin", f / "data_batch_2.bin"); });
  refused("data_batch_2.bin", "not a regular file", [](const fs::path& f) { fs::create_directory(f / "data_batch_2.bin"); });
  refused("data_batch_2.bin", "not a regular file", [](const fs::path& f) { ::mkfifo((f / "data_batch_2.bin").c_str(), 0600); });
  refused("batches.meta.txt", "names 0 classes", [](const fs::path& f) { write_text(f / "batches.meta.txt", "\n\n"); });
  refused("batches.meta.txt", "300 classes", [](const fs::path& f) {
    std::string names;
    for (int i = 0; i < 300; ++i) names += "x\n";
    write_text(f / "batches.meta.txt", names);
  });
  refused("batches.meta.txt", "one class name a line",
          [](const fs::path& f) { write_text(f / "batches.meta.txt", std::string(70'000, 'x')); });
  refused("data_batch_1.bin", "label 3", [](const fs::path& f) { write_text(f / "batches.meta.txt", "a\nb\nc\n"); });
}

TEST(Cifar, FileWithoutPermissionIsRefusedByName) {
  const TestFolder folder;
  write_cifar(folder.path(), 4, 2);
  fs::permissions(folder.path(), fs::perms::all);
  fs::permissions(folder.path() / "test_batch.bin", fs::perms::none);
  const std::string error = user_error_of([&] {
    const Unprivileged nobody;
    open_cifar(folder.path(), "x");
  });
  EXPECT_TRUE(support::mentions(error, {"test_batch.bin", "Permission denied"})) << error;
}

TEST(Cifar, FileCutWhileTrainingIsRefusedByName) {
  const TestFolder folder;
  write_cifar(folder.path(), 4, 2);
  const auto dataset = open_cifar(folder.path(), "x");
  fs::resize_file(folder.path() / "data_batch_1.bin", 3 * 3073 + 100);
  ByteString pixels(dataset->description().image_bytes());
  EXPECT_EQ(read_image(*dataset, Split::train, 2, pixels), 2);
  const std::string error = user_error_of([&] { read_image(*dataset, Split::train, 3, pixels); });
  EXPECT_NE(error.find("data_batch_1.bin has become shorter"), std::string::npos) << error;
}

}  // namespace
}  // namespace snug::data
