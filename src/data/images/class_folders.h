// How a folder of images is laid out: which folders are classes, and which of their files are images by their names.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace snug::data {

// Whether it ends in .png, .jpg or .jpeg, in either case.
bool is_image_name(std::string_view name);

struct ClassFolders {
  // PATH/train and PATH/test, or PATH twice.
  std::filesystem::path train;
  std::filesystem::path test;
  bool is_divided = false;              // into train and test
  std::vector<std::string> names;       // sorted: of the classes that are trained
  std::vector<std::string> test_names;  // those of them that are tested, where it is divided
};
// UserError when the folder has train or test but not both, no class, or a class to test that is not trained.
ClassFolders find_class_folders(const std::filesystem::path& folder);

}  // namespace snug::data
