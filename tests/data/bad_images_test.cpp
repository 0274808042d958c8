// Images that cannot be read, left out: the data set is what it would be were they not there.
#include <map>

#include <gtest/gtest.h>

#include "data/images/image_folder.h"
#include "pictures.h"
#include "support.h"
#include "support/messages.h"

namespace snug::data {
namespace {

std::unique_ptr<Dataset> open_without_bad(const fs::path& folder) {
  return open_image_folder(folder, "photos", 8, BadImages::left_out);
}

void write_images(const fs::path& folder, int count) {
  for (int i = 0; i < count; ++i) {
    const auto shade = static_cast<std::uint8_t>(i);
    write_file(folder / (std::to_string(i) + ".png"), plain_png(4, 4, shade, shade, shade));
  }
}

// All that can be seen of a data set but its notes.
void expect_same_data(const Dataset& a, const Dataset& b) {
  Description described = a.description();
  described.notes = b.description().notes;
  EXPECT_EQ(described, b.description());
  ByteString of_a(a.description().image_bytes());
  ByteString of_b(b.description().image_bytes());
  for (const Split split : {Split::train, Split::test}) {
    for (std::int64_t i = 0; i < a.description().examples(split); ++i) {
      EXPECT_EQ(read_image(a, split, i, of_a), read_image(b, split, i, of_b));
      EXPECT_EQ(of_a, of_b);
    }
  }
}

TEST(BadImages, LeftOutAreAsIfTheyWereNotThere) {
  for (const bool divided : {false, true}) {
    const TestFolder folder;
    const fs::path train = divided ? folder.path() / "train" : folder.path();
    write_images(train / "cat", 300);  // more than are decoded together
    write_images(train / "dog", 40);
    if (divided) write_images(folder.path() / "test/cat", 5);
    std::vector<fs::path> bad{train / "cat/7.png", train / "cat/290.png", train / "dog/0.png"};
    if (divided) bad.push_back(folder.path() / "test/cat/3.png");
    for (const fs::path& path : bad) write_text(path, "not an image");
    const auto without_bad = open_without_bad(folder.path());
    EXPECT_EQ(without_bad->description().notes,
              (std::vector<std::string>{"left out " + std::to_string(bad.size()) +
                                        " images that cannot be read; snug data check " + folder.string() + " lists them"}));
    for (const fs::path& path : bad) fs::remove(path);
    expect_same_data(*without_bad, *open_image_folder(folder.path(), "photos", 8));
  }
}

TEST(BadImages, NothingIsSaidWhereAllCanBeRead) {
  const TestFolder folder;
  write_images(folder.path() / "cat", 20);
  write_images(folder.path() / "dog", 20);
  const auto dataset = open_without_bad(folder.path());
  EXPECT_TRUE(dataset->description().notes.empty());
  expect_same_data(*dataset, *open_image_folder(folder.path(), "photos", 8));
}

// Classes of a few images each are listed twice before one is set aside; they are counted once.
TEST(BadImages, SmallClassesAreCountedOnce) {
  const TestFolder folder;
  for (const char* name : {"a", "b", "c", "d"}) write_images(folder.path() / name, 3);
  write_text(folder.path() / "c/1.png", "x");
  const auto dataset = open_without_bad(folder.path());
  ASSERT_EQ(dataset->description().notes.size(), 1U);
  EXPECT_TRUE(support::mentions(dataset->description().notes[0], {"left out", "1 image"}));
  EXPECT_EQ(dataset->description().train_examples + dataset->description().test_examples, 11);
}

TEST(BadImages, AClassOfNothingElseIsRefused) {
  const TestFolder folder;
  write_images(folder.path() / "cat", 20);
  write_text(folder.path() / "dog/1.png", "x");
  const std::string error = user_error_of([&] { open_without_bad(folder.path()); });
  EXPECT_TRUE(support::mentions(error, {"dog", "no image"})) << error;
}

}  // namespace
}  // namespace snug::data
