#include "data/images/image_folder.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/counted.h"
#include "base/error.h"
#include "base/philox.h"
#include "base/printable.h"
#include "data/external_sort.h"
#include "data/file_index.h"
#include "data/folder.h"
#include "data/images/class_folders.h"
#include "data/images/image_file.h"
#include "data/images/readable_images.h"
#include "data/images/statistics.h"

namespace snug::data {

namespace {

// Decoding takes milliseconds for a photograph: a few hundred are enough for means and deviations.
constexpr std::int64_t kMeasured = 256;
// The sort key by which files are set aside: eight bytes that look random, then the name. FNV-1a, then mixed: names that differ
// by a digit must not be neighbors.
std::string place_of(std::string_view class_name, std::string_view file_name) {
  std::uint64_t hash = 0xCBF29CE484222325U;
  const auto add = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  };
  add(class_name);
  add("/");
  add(file_name);
  const PhiloxBlock mixed = philox(hash, 0, 0);
  std::string place;
  for (const std::uint32_t word : {mixed.word[0], mixed.word[1]}) {
    for (const unsigned shift : {24U, 16U, 8U, 0U}) place += static_cast<char>(word >> shift);
  }
  return place.append(file_name);
}

class ImageFolder : public ImageDataset {
 public:
  ImageFolder(const std::filesystem::path& folder, const std::string& name, std::int64_t side, BadImages bad_images)
      : bad_images_(bad_images) {
    description_.name = name;
    description_.channels = 3;
    description_.height = side;
    description_.width = side;
    const ClassFolders found = find_class_folders(folder);
    train_.folder = found.train;
    test_.folder = found.test;
    if (found.is_divided) {
      train_.prefix = "train/";
      test_.prefix = "test/";
    }
    description_.class_names = found.names;
    description_.classes = static_cast<std::int64_t>(description_.class_names.size());
    if (found.is_divided) {
      list_split(train_, found.names);
      list_split(test_, found.test_names);
    } else {
      list_and_divide();
    }
    train_.files.finish();
    test_.files.finish();
    description_.train_examples = train_.files.size();
    description_.test_examples = test_.files.size();
    if (description_.test_examples == 0) {
      throw_user_error(
          "{} has too few images ({}) to set a tenth aside for testing: add more, or sort them into train and test folders",
          folder.string(), description_.train_examples);
    }
    if (left_out_ > 0) {
      const std::string names = printable(first_left_out_, 200);
      description_.notes.push_back(
          left_out_ == 1
              ? fmt::format("{} is not a .png, .jpg or .jpeg file and is left out", names)
              : fmt::format("{} files in the class folders of {} are not .png, .jpg or .jpeg and are left out; the first is {}",
                            left_out_, folder.string(), names));
    }
    if (unreadable_ > 0) {
      description_.notes.push_back(fmt::format("left out {} that cannot be read; snug data check {} lists them",
                                               counted(unreadable_, "image"), printable(folder.string(), 200)));
    }
    measure_channels(*this, kMeasured, description_);
  }

  const Description& description() const override { return description_; }

  std::int32_t read_image(Split split, std::int64_t index, std::span<std::byte> pixels) const override {
    const Side& side = split == Split::train ? train_ : test_;
    const FileIndex::Entry entry = side.files.read(index);
    const std::string& class_name = description_.class_names[static_cast<std::size_t>(entry.label)];
    const std::filesystem::path path = side.folder / class_name / std::filesystem::path(entry.name);
    try {
      read_image_file(path, description_.width, pixels);
    } catch (const UserError& error) {
      throw UnreadableExample(error.what(), fingerprint_of(side.name_of(class_name, entry.name)));
    }
    return entry.label;
  }

 private:
  struct Side {
    std::filesystem::path folder;
    // Of names in the fingerprint. Empty where one folder holds both sides: which side a file is on then depends on the others.
    std::string prefix;
    FileIndex files;

    std::string name_of(const std::string& class_name, std::string_view file) const {
      return prefix + class_name + '/' + std::string(file);
    }
  };

  void append(Side& side, std::size_t label, std::string_view file) {
    side.files.append(file, static_cast<std::int32_t>(label));
    description_.fingerprint += fingerprint_of(side.name_of(description_.class_names[label], file));
  }

  // The names of a class's images, in whatever order the system has them; other files are counted.
  void for_each_image(const std::filesystem::path& folder, const std::function<void(std::string_view)>& take) {
    bool any = false;
    std::int64_t taken = 0;
    ReadableImages readable(folder, [&](std::string_view name) {
      ++taken;
      take(name);
    });
    for_each_entry(folder, [&](std::string_view name, EntryKind kind) {
      if (kind != EntryKind::file) return;
      if (is_image_name(name)) {
        any = true;
        if (bad_images_ == BadImages::left_out) return readable.add(name);
        ++taken;
        return take(name);
      }
      ++left_out_;
      if (const std::string path = (folder / name).string(); left_out_ == 1 || path < first_left_out_) first_left_out_ = path;
    });
    readable.finish();
    unreadable_ += readable.unreadable();
    if (!any) {
      throw_user_error("class folder {} has no .png, .jpg or .jpeg file directly in it: add images or remove the folder",
                       folder.string());
    }
    if (taken == 0) {
      throw_user_error("class folder {} has no image that can be read: repair its images or remove the folder", folder.string());
    }
  }

  // A class need not have test images.
  void list_split(Side& side, const std::vector<std::string>& classes) {
    for (const std::string& class_name : classes) {
      ExternalSort names;
      for_each_image(side.folder / class_name, [&](std::string_view name) { names.add(name); });
      const auto label = std::ranges::lower_bound(description_.class_names, class_name) - description_.class_names.begin();
      names.drain([&](std::string_view name) { append(side, static_cast<std::size_t>(label), name); });
    }
  }

  // A tenth of each class, rounded, for testing; at least one image if there are about ten.
  void list_and_divide() {
    std::int64_t images = 0;
    std::size_t largest = 0;
    std::int64_t largest_images = 0;
    for (std::size_t label = 0; label < description_.class_names.size(); ++label) {
      const std::int64_t count = divide_class(label, /*least=*/0);
      images += count;
      if (count > largest_images) largest = label;
      largest_images = std::max(largest_images, count);
    }
    if (test_.files.size() > 0 || images < 10) return;
    // Each class was too small for a tenth: divides them again, with one image of the largest for testing.
    train_.files = FileIndex();
    left_out_ = 0;
    unreadable_ = 0;
    description_.fingerprint = 0;
    for (std::size_t label = 0; label < description_.class_names.size(); ++label) divide_class(label, label == largest ? 1 : 0);
  }

  // How many images of a class are for testing. Some classes round up and others down, so that many small classes give a tenth
  // together. It depends on the class alone: if remainders were carried to the next class, a file added to one would move files
  // of the others. Each class keeps one image for training.
  static std::int64_t tests_of(std::size_t label, std::int64_t images, std::int64_t least) {
    const auto turn = static_cast<std::int64_t>((5 + 3 * label) % 10);  // 5, 8, 1, 4, 7, 0, 3, 6, 9, 2, 5, ...
    return std::min(std::max((images + turn) / 10, least), images - 1);
  }

  // Lists a class and returns how many images it has. Those for testing are the first in the order of place_of: an added file
  // moves at most one other to the other side.
  std::int64_t divide_class(std::size_t label, std::int64_t least) {
    const std::string& class_name = description_.class_names[label];
    ExternalSort names;
    ExternalSort places;
    for_each_image(train_.folder / class_name, [&](std::string_view name) {
      names.add(name);
      places.add(place_of(class_name, name));
    });
    const std::int64_t images = names.size();
    const std::int64_t tests = tests_of(label, images, least);
    std::string last_place;
    std::int64_t number = 0;
    places.drain([&](std::string_view place) {
      if (++number == tests) last_place = place;
    });
    names.drain([&](std::string_view name) {
      const bool is_test = tests > 0 && place_of(class_name, name) <= last_place;
      append(is_test ? test_ : train_, label, name);
    });
    return images;
  }

  Description description_;
  Side train_;
  Side test_;
  BadImages bad_images_;
  std::int64_t unreadable_ = 0;  // images that are left out
  std::int64_t left_out_ = 0;    // files that are not images
  std::string first_left_out_;
};

}  // namespace

std::unique_ptr<Dataset> open_image_folder(const std::filesystem::path& folder, const std::string& name, std::int64_t side,
                                           BadImages bad_images) {
  return std::make_unique<ImageFolder>(folder, name, side, bad_images);
}

CheckedFiles check_image_folder(const std::filesystem::path& folder, const BadFileCallback& use) {
  const ClassFolders found = find_class_folders(folder);
  CheckedFiles checked;
  const auto check = [&](const std::filesystem::path& split, const std::vector<std::string>& classes) {
    for (const std::string& class_name : classes) {
      ExternalSort names;
      for_each_entry(split / class_name, [&](std::string_view name, EntryKind kind) {
        if (kind == EntryKind::file && is_image_name(name)) names.add(name);
      });
      ReadableImages readable(split / class_name, {}, use);
      checked.files += names.size();
      names.drain([&](std::string_view name) { readable.add(name); });
      readable.finish();
      checked.bad += readable.unreadable();
    }
  };
  check(found.train, found.names);
  check(found.test, found.test_names);
  return checked;
}

}  // namespace snug::data
