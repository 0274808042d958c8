#include "data/images/class_folders.h"

#include <algorithm>

#include "base/error.h"
#include "data/folder.h"

namespace snug::data {

namespace {

// Their names are in memory.
constexpr std::size_t kMostClasses = 100'000;

bool is_folder(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

}  // namespace

bool is_image_name(std::string_view name) { return has_ending(name, {"png", "jpg", "jpeg"}); }

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

ClassFolders find_class_folders(const std::filesystem::path& folder) {
  const bool has_train = is_folder(folder / "train");
  const bool has_test = is_folder(folder / "test");
  if (has_train != has_test) {
    throw_user_error("{} has a folder {} but none named {}: make both, or let {} have the class folders themselves",
                     folder.string(), has_train ? "train" : "test", has_train ? "test" : "train", folder.string());
  }
  ClassFolders found{.train = has_train ? folder / "train" : folder, .test = has_test ? folder / "test" : folder};
  found.is_divided = has_train;
  found.names = class_folders(found.train);
  if (!has_train) return found;
  found.test_names = class_folders(found.test);
  for (const std::string& name : found.test_names) {
    if (!std::ranges::binary_search(found.names, name)) {
      throw_user_error("class {} is in {} but not in {}: nothing could be learned of it", name, found.test.string(),
                       found.train.string());
    }
  }
  return found;
}

}  // namespace snug::data
