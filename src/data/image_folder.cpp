#include "data/image_folder.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <dirent.h>
#include <functional>
#include <memory>
#include <string_view>
#include <sys/stat.h>
#include <vector>

#include "base/error.h"
#include "base/philox.h"
#include "data/external_sort.h"
#include "data/file.h"
#include "data/file_index.h"
#include "data/file_source.h"
#include "data/image.h"
#include "data/statistics.h"

namespace snug::data {

namespace {

// Decoding takes milliseconds for a photograph: a few hundred are enough for means and deviations.
constexpr std::int64_t kMeasured = 256;
// Their names are in memory.
constexpr std::size_t kMostClasses = 100'000;

enum class EntryKind { folder, file, other };

// Calls `take` for every entry whose name does not begin with a dot, in whatever order the system has them. Links are followed.
void for_each_entry(const std::filesystem::path& folder, const std::function<void(std::string_view name, EntryKind kind)>& take) {
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir(folder.c_str()), ::closedir);
  if (listing == nullptr) throw_user_error("folder {} cannot be read: {}", folder.string(), system_message(errno));
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(listing.get());
    if (entry == nullptr && errno != 0) throw_user_error("folder {} cannot be read: {}", folder.string(), system_message(errno));
    if (entry == nullptr) return;
    if (entry->d_name[0] == '.') continue;
    EntryKind kind = entry->d_type == DT_DIR ? EntryKind::folder : entry->d_type == DT_REG ? EntryKind::file : EntryKind::other;
    if (entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN) {
      struct stat status {};
      if (::fstatat(::dirfd(listing.get()), entry->d_name, &status, 0) != 0) {
        throw_user_error("{} cannot be read: {}", (folder / entry->d_name).string(), system_message(errno));
      }
      kind = S_ISDIR(status.st_mode) ? EntryKind::folder : S_ISREG(status.st_mode) ? EntryKind::file : EntryKind::other;
    }
    take(entry->d_name, kind);
  }
}

bool is_image_name(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  std::string ending(name.substr(dot + 1));
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending == "png" || ending == "jpg" || ending == "jpeg";
}

bool is_folder(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

std::vector<std::string> class_folders(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for_each_entry(folder, [&](std::string_view name, EntryKind kind) {
    if (kind != EntryKind::folder) return;
    if (names.size() == kMostClasses) throw_user_error("{} has more than {} class folders", folder.string(), kMostClasses);
    names.emplace_back(name);
  });
  if (names.empty()) {
    throw_user_error("{} has neither CIFAR-10 batches nor a folder of images for each class, as in {}", folder.string(),
                     (folder / "cat" / "1.png").string());
  }
  std::ranges::sort(names);
  return names;
}

// FNV-1a, then mixed: names that differ by a digit must not go to the same side together.
bool is_set_aside(std::string_view class_name, std::string_view file_name) {
  std::uint64_t hash = 0xCBF29CE484222325U;
  const auto add = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  };
  add(class_name);
  add("/");
  add(file_name);
  return uniform_below(philox(hash, 0, 0).word[0], 10) == 0;
}

class ImageFolder : public Dataset {
 public:
  ImageFolder(const std::filesystem::path& folder, const std::string& name, std::int64_t side) {
    description_.name = name;
    description_.channels = 3;
    description_.height = side;
    description_.width = side;
    const bool has_train = is_folder(folder / "train");
    const bool has_test = is_folder(folder / "test");
    if (has_train != has_test) {
      throw_user_error("{} has a folder {} but none named {}: make both, or let {} have the class folders themselves",
                       folder.string(), has_train ? "train" : "test", has_train ? "test" : "train", folder.string());
    }
    train_.folder = has_train ? folder / "train" : folder;
    test_.folder = has_test ? folder / "test" : folder;
    if (has_train) {
      train_.prefix = "train/";
      test_.prefix = "test/";
    }
    description_.class_names = class_folders(train_.folder);
    description_.classes = static_cast<std::int64_t>(description_.class_names.size());
    if (has_train) {
      check_test_classes();
      list_split(train_, "train");
      list_split(test_, "test");
    } else {
      list_and_divide();
    }
    train_.files.finish();
    test_.files.finish();
    description_.train_examples = train_.files.size();
    description_.test_examples = test_.files.size();
    if (description_.test_examples == 0) {
      throw_user_error(
          "{} has too few images ({}) to set any aside for testing: add more, or sort them into train and test folders",
          folder.string(), description_.train_examples);
    }
    measure_channels(*this, kMeasured, description_);
  }

  const Description& description() const override { return description_; }

  std::int32_t read(Split split, std::int64_t index, std::span<std::byte> pixels) const override {
    const Side& side = split == Split::train ? train_ : test_;
    const FileIndex::Entry entry = side.files.read(index);
    const std::string& class_name = description_.class_names[static_cast<std::size_t>(entry.label)];
    const std::filesystem::path path = side.folder / class_name / std::filesystem::path(entry.name);
    try {
      FileSource source(path);
      Resizer resizer(description_.width, pixels);
      decode_image(source, path.string(), resizer);
      SNUG_CHECK(resizer.complete(), "{} was decoded only in part", path.string());
    } catch (const UserError& error) {
      throw UnreadableExample(error.what(), fingerprint_of(side.name_of(class_name, entry.name)));
    }
    return entry.label;
  }

 private:
  struct Side {
    std::filesystem::path folder;
    // Of names in the fingerprint. None where one folder holds both sides: which side a file is on then depends on the others.
    std::string prefix;
    FileIndex files;

    std::string name_of(const std::string& class_name, std::string_view file) const {
      return prefix + class_name + '/' + std::string(file);
    }
  };

  void append(Side& side, std::int32_t label, std::string_view file) {
    side.files.append(file, label);
    description_.fingerprint += fingerprint_of(side.name_of(description_.class_names[static_cast<std::size_t>(label)], file));
  }

  // The images of a class, in the order of their names.
  static void for_each_image(const std::filesystem::path& folder, const std::function<void(std::string_view)>& take) {
    ExternalSort sort;
    for_each_entry(folder, [&](std::string_view name, EntryKind kind) {
      if (kind == EntryKind::file && is_image_name(name)) sort.add(name);
    });
    if (sort.size() == 0) {
      throw_user_error("class folder {} has no .png, .jpg or .jpeg file directly in it: add images or remove the folder",
                       folder.string());
    }
    sort.drain(take);
  }

  void check_test_classes() const {
    for (const std::string& name : class_folders(test_.folder)) {
      if (!std::ranges::binary_search(description_.class_names, name)) {
        throw_user_error("class {} is in {} but not in {}: nothing could be learned of it", name, test_.folder.string(),
                         train_.folder.string());
      }
    }
  }

  // A class of training need not be tested.
  void list_split(Side& side, std::string_view split) {
    for (std::size_t label = 0; label < description_.class_names.size(); ++label) {
      const std::filesystem::path folder = side.folder / description_.class_names[label];
      if (split == "test" && !is_folder(folder)) continue;
      for_each_image(folder, [&](std::string_view name) { append(side, static_cast<std::int32_t>(label), name); });
    }
  }

  void list_and_divide() {
    for (std::size_t label = 0; label < description_.class_names.size(); ++label) {
      const std::string& class_name = description_.class_names[label];
      bool first = true;
      for_each_image(train_.folder / class_name, [&](std::string_view name) {
        Side& side = !first && is_set_aside(class_name, name) ? test_ : train_;
        append(side, static_cast<std::int32_t>(label), name);
        first = false;
      });
    }
  }

  Description description_;
  Side train_;
  Side test_;
};

}  // namespace

std::unique_ptr<Dataset> open_image_folder(const std::filesystem::path& folder, const std::string& name, std::int64_t side) {
  return std::make_unique<ImageFolder>(folder, name, side);
}

}  // namespace snug::data
