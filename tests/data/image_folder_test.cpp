#include "data/images/image_folder.h"

#include <map>
#include <set>
#include <sys/stat.h>
#include <vector>

#include "pictures.h"
#include "support.h"
#include "support/messages.h"

namespace snug::data {
namespace {

// Two classes in two splits; every image of one color.
void write_small_folder(const fs::path& root) {
  write_file(root / "train/cat/b.png", plain_png(40, 30, 10, 0, 0));
  write_file(root / "train/cat/a.PNG", plain_png(5, 90, 11, 0, 0));
  write_file(root / "train/dog/1.jpeg", make_jpeg(64, 64, std::vector<std::uint8_t>(64 * 64 * 3, 200)));
  write_file(root / "test/cat/x.JPG", plain_png(32, 32, 12, 0, 0));  // a PNG by its bytes
  write_file(root / "test/dog/y.png", plain_png(32, 32, 13, 0, 0));
}

std::string open_error(const fs::path& root) {
  return user_error_of([&] { open_image_folder(root, root.string(), 32); });
}

void expect_has(const std::string& text, const std::string& part) { EXPECT_NE(text.find(part), std::string::npos) << text; }

TEST(ImageFolder, ClassesAndFilesComeInTheOrderOfTheirNames) {
  const TestFolder folder;
  write_small_folder(folder.path());
  const auto dataset = open_image_folder(folder.path(), "pets", 16);
  const Description& description = dataset->description();
  EXPECT_EQ(description.name, "pets");
  EXPECT_EQ(description.class_names, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(description.classes, 2);
  EXPECT_EQ(description.height, 16);
  EXPECT_EQ(description.width, 16);
  EXPECT_EQ(description.train_examples, 3);
  EXPECT_EQ(description.test_examples, 2);
  ByteString pixels(description.image_bytes());
  const auto first_value = [&](Split split, std::int64_t index, std::int32_t label) {
    EXPECT_EQ(read_image(*dataset, split, index, pixels), label);
    return std::to_integer<int>(pixels[0]);
  };
  EXPECT_EQ(first_value(Split::train, 0, 0), 11);
  EXPECT_EQ(first_value(Split::train, 1, 0), 10);
  EXPECT_EQ(first_value(Split::train, 2, 1), 200);
  EXPECT_EQ(first_value(Split::test, 0, 0), 12);
  EXPECT_EQ(first_value(Split::test, 1, 1), 13);
  EXPECT_NEAR(description.mean[0], (11 + 10 + 200) / 3.0, 1e-9);
}

TEST(ImageFolder, EverythingElseInTheFoldersIsPassedOver) {
  const TestFolder folder;
  write_small_folder(folder.path());
  write_text(folder.path() / "README.md", "x");
  write_text(folder.path() / "train/labels.csv", "x");
  write_text(folder.path() / "train/cat/Thumbs.db", "x");
  write_text(folder.path() / "train/cat/.hidden.png", "x");
  write_text(folder.path() / "train/cat/png", "x");
  write_text(folder.path() / "train/.cache/x.png", "x");
  write_text(folder.path() / "train/cat/deeper/x.png", "x");
  fs::create_directory(folder.path() / "train/cat/folder.png");
  const auto dataset = open_image_folder(folder.path(), "pets", 16);
  EXPECT_EQ(dataset->description().train_examples, 3);
  EXPECT_EQ(dataset->description().classes, 2);
  EXPECT_EQ(dataset->description().notes,
            (std::vector<std::string>{"2 files in the class folders of " + folder.string() +
                                      " are not .png, .jpg or .jpeg and are left out; the first is " +
                                      (folder.path() / "train/cat/Thumbs.db").string()}));
}

TEST(ImageFolder, FileThatIsLeftOutIsNamed) {
  const TestFolder folder;
  write_small_folder(folder.path());
  EXPECT_TRUE(open_image_folder(folder.path(), "pets", 16)->description().notes.empty());
  write_text(folder.path() / "test/dog/a.webp", "x");
  EXPECT_EQ(open_image_folder(folder.path(), "pets", 16)->description().notes,
            (std::vector<std::string>{(folder.path() / "test/dog/a.webp").string() +
                                      " is not a .png, .jpg or .jpeg file and is left out"}));
}

TEST(ImageFolder, ClassOfTrainingNeedNotBeTested) {
  const TestFolder folder;
  write_small_folder(folder.path());
  fs::remove_all(folder.path() / "test/cat");
  const auto dataset = open_image_folder(folder.path(), "pets", 16);
  ByteString pixels(dataset->description().image_bytes());
  EXPECT_EQ(dataset->description().test_examples, 1);
  EXPECT_EQ(read_image(*dataset, Split::test, 0, pixels), 1) << "labels are those of training";
}

// The red value is the class, the green one the file.
void write_undivided(const fs::path& root, int files) {
  for (int c = 0; c < 3; ++c) {
    for (int i = 0; i < files; ++i) {
      const std::string name = "class" + std::to_string(c) + "/" + std::to_string(i) + ".png";
      write_file(root / name, plain_png(2, 2, static_cast<std::uint8_t>(c), static_cast<std::uint8_t>(i), 0));
    }
  }
}

std::set<std::pair<int, int>> files_in(const Dataset& dataset, Split split) {
  std::set<std::pair<int, int>> result;
  ByteString pixels(dataset.description().image_bytes());
  for (std::int64_t i = 0; i < dataset.description().examples(split); ++i) {
    const int label = read_image(dataset, split, i, pixels);
    EXPECT_EQ(label, std::to_integer<int>(pixels[0]));
    EXPECT_TRUE(result.emplace(label, std::to_integer<int>(pixels[1])).second) << "twice";
  }
  return result;
}

std::size_t tests_among(int classes, int files_each) {
  const TestFolder folder;
  for (int c = 0; c < classes; ++c) {
    for (int i = 0; i < files_each; ++i)
      write_file(folder.path() / ("class" + std::to_string(c)) / (std::to_string(i) + ".png"), plain_png(2, 2, 0, 0, 0));
  }
  return static_cast<std::size_t>(open_image_folder(folder.path(), "x", 2)->description().test_examples);
}

TEST(ImageFolder, TenthForTestingIsATenth) {
  EXPECT_EQ(tests_among(2, 20), 4U);
  EXPECT_EQ(tests_among(4, 10), 4U);
  EXPECT_EQ(tests_among(1, 24), 2U);
  EXPECT_EQ(tests_among(3, 8), 2U);
  EXPECT_EQ(tests_among(30, 3), 9U) << "rounded over all, not to nothing in each";
  EXPECT_EQ(tests_among(1, 10), 1U);
  EXPECT_EQ(tests_among(5, 2), 1U);
}

TEST(ImageFolder, SomeTenImagesGiveOneToTestHoweverTheyAreSpread) {
  const TestFolder folder;
  const auto fill = [&](const std::string& name, int files) {
    for (int i = 0; i < files; ++i) write_file(folder.path() / name / (std::to_string(i) + ".png"), plain_png(2, 2, 0, 0, 0));
  };
  fill("a", 4);
  fill("b", 1);
  fill("c", 8);
  write_text(folder.path() / "a/x.webp", "x");
  const Description description = open_image_folder(folder.path(), "x", 2)->description();
  EXPECT_EQ(description.test_examples, 1);
  EXPECT_EQ(description.train_examples, 12);
  EXPECT_TRUE(support::mentions(description.notes.front(), {(folder.path() / "a/x.webp").string(), ".png", "left out"}));
}

TEST(ImageFolder, EachClassGivesItsTenthAndNoMoreThanThat) {
  const TestFolder folder;
  write_undivided(folder.path(), 50);
  // Classes that have nothing to give must not take from others.
  for (int i = 0; i < 60; ++i) write_file(folder.path() / ("a" + std::to_string(i)) / "1.png", plain_png(2, 2, 0, 0, 0));
  const auto dataset = open_image_folder(folder.path(), "x", 2);
  std::map<int, int> count;
  ByteString pixels(dataset->description().image_bytes());
  for (std::int64_t i = 0; i < dataset->description().test_examples; ++i) ++count[read_image(*dataset, Split::test, i, pixels)];
  EXPECT_EQ(count, (std::map<int, int>{{60, 5}, {61, 5}, {62, 5}}));
}

TEST(ImageFolder, FilesThatAreAddedMoveAtMostAsManyToTheOtherSide) {
  const TestFolder folder;
  write_undivided(folder.path(), 100);
  const auto before = files_in(*open_image_folder(folder.path(), "x", 2), Split::test);
  EXPECT_EQ(before.size(), 30U);
  for (const int files : {101, 110}) {
    write_undivided(folder.path(), files);
    const auto after = files_in(*open_image_folder(folder.path(), "x", 2), Split::test);
    EXPECT_EQ(after.size(), static_cast<std::size_t>(3 * files / 10));
    std::set<std::pair<int, int>> moved;
    for (const auto& file : before) {
      if (!after.contains(file)) moved.insert(file);
    }
    for (const auto& file : after) {
      if (!before.contains(file) && file.second < 100) moved.insert(file);
    }
    EXPECT_LE(moved.size(), static_cast<std::size_t>(3 * (files - 100)));
  }
}

// More names than one run of the sort holds.
TEST(ImageFolder, LargeClassIsDividedLikeASmallOne) {
  const TestFolder folder;
  const fs::path picture = folder.path() / "picture";
  write_file(picture, plain_png(2, 2, 1, 2, 3));
  fs::create_directories(folder.path() / "set/class");
  for (int i = 0; i < 3000; ++i)
    fs::create_hard_link(picture, folder.path() / "set/class" / (std::string(200, 'n') + std::to_string(i) + ".png"));
  const auto dataset = open_image_folder(folder.path() / "set", "x", 2);
  EXPECT_EQ(dataset->description().train_examples, 2700);
  EXPECT_EQ(dataset->description().test_examples, 300);
}

TEST(ImageFolder, EveryClassTrainsEvenWithOneImage) {
  const TestFolder folder;
  write_undivided(folder.path(), 60);
  for (int i = 0; i < 30; ++i) write_file(folder.path() / ("single" + std::to_string(i)) / "1.png", plain_png(2, 2, 1, 1, 1));
  const auto dataset = open_image_folder(folder.path(), "x", 2);
  std::map<int, int> count;
  ByteString pixels(dataset->description().image_bytes());
  for (std::int64_t i = 0; i < dataset->description().train_examples; ++i) ++count[read_image(*dataset, Split::train, i, pixels)];
  EXPECT_EQ(count.size(), 33U);
}

TEST(ImageFolder, TooFewImagesToTestWithIsSaid) {
  const TestFolder folder;
  write_file(folder.path() / "a/1.png", plain_png(2, 2, 1, 1, 1));
  expect_has(open_error(folder.path()), "too few images (1)");
}

TEST(ImageFolder, BadFoldersAreRefused) {
  const auto refused = [](const std::string& word, const std::function<void(const fs::path&)>& damage) {
    const TestFolder folder;
    write_small_folder(folder.path());
    damage(folder.path());
    expect_has(open_error(folder.path()), word);
  };
  refused("train/empty has no .png", [](const fs::path& f) { fs::create_directory(f / "train/empty"); });
  refused("test/dog has no .png", [](const fs::path& f) { fs::remove(f / "test/dog/y.png"); });
  refused("none named test", [](const fs::path& f) { fs::remove_all(f / "test"); });
  refused("none named train", [](const fs::path& f) { fs::remove_all(f / "train"); });
  refused("class bird is in", [](const fs::path& f) { write_file(f / "test/bird/1.png", plain_png(1, 1, 0, 0, 0)); });
  refused("a folder of images for each class", [](const fs::path& f) {
    fs::remove_all(f / "train");
    fs::create_directory(f / "train");
  });
  refused("a folder of images for each class", [](const fs::path& f) {
    fs::remove_all(f / "train");
    fs::remove_all(f / "test");
    write_file(f / "1.png", plain_png(1, 1, 0, 0, 0));
  });
  refused("train/loop cannot be read", [](const fs::path& f) { fs::create_symlink("loop", f / "train/loop"); });
  refused("gone.png cannot be read", [](const fs::path& f) { fs::create_symlink("nowhere.png", f / "train/cat/gone.png"); });
  refused("loop.png cannot be read", [](const fs::path& f) { fs::create_symlink("loop.png", f / "train/cat/loop.png"); });
  refused("train/up has no .png", [](const fs::path& f) { fs::create_directory_symlink("..", f / "train/up"); });
}

TEST(ImageFolder, FolderWithoutPermissionIsRefusedByName) {
  const TestFolder folder;
  write_small_folder(folder.path());
  fs::permissions(folder.path(), fs::perms::all);
  fs::permissions(folder.path() / "train/dog", fs::perms::none);
  const std::string error = user_error_of([&] {
    const Unprivileged nobody;
    open_image_folder(folder.path(), "x", 32);
  });
  fs::permissions(folder.path() / "train/dog", fs::perms::all);
  expect_has(error, "train/dog cannot be read: Permission denied");
}

TEST(ImageFolder, BadImagesAreRefusedByNameWhenRead) {
  const TestFolder folder;
  write_small_folder(folder.path());
  const auto dataset = open_image_folder(folder.path(), "x", 32);
  ByteString pixels(dataset->description().image_bytes());
  const fs::path path = folder.path() / "test/cat/x.JPG";
  const auto error = [&] { return user_error_of([&] { read_image(*dataset, Split::test, 0, pixels); }); };
  fs::resize_file(path, 60);
  expect_has(error(), "test/cat/x.JPG is cut short or corrupt");
  write_text(path, "");
  expect_has(error(), "test/cat/x.JPG is empty");
  write_text(path, "GIF89a...");
  expect_has(error(), "test/cat/x.JPG is neither a PNG nor a JPEG");
  fs::remove(path);
  expect_has(error(), "test/cat/x.JPG cannot be read: No such file");
  ::mkfifo(path.c_str(), 0600);
  expect_has(error(), "test/cat/x.JPG is not a regular file");
}

TEST(ImageFolder, CorruptTrainingImageIsRefusedWhenOpened) {
  const TestFolder folder;
  write_small_folder(folder.path());
  write_text(folder.path() / "train/cat/b.png", "x");
  expect_has(open_error(folder.path()), "train/cat/b.png is neither");
}

TEST(ImageFolder, NoRoomForTheListOfFilesIsSaid) {
  const TestFolder folder;
  write_small_folder(folder.path());
  const ScopedVariable temporary("TMPDIR", "/nowhere/at/all");
  expect_has(open_error(folder.path()), "set TMPDIR");
}

}  // namespace
}  // namespace snug::data
