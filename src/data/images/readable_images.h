// Which of a folder's images can be read: all of them are decoded, on as many threads as there are cores.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"

namespace snug::data {

// Takes names, decodes some hundred files at a time, and hands on the names of those that can be read and what is wrong with the
// others, in the order in which they came. Resident are some hundred names, and a few rows of an image on each thread.
class ReadableImages {
 public:
  ReadableImages(std::filesystem::path folder, std::function<void(std::string_view name)> use, BadFileCallback use_bad = {})
      : folder_(std::move(folder)), use_(std::move(use)), use_bad_(std::move(use_bad)) {}

  void add(std::string_view name);
  // After the last one.
  void finish();

  std::int64_t unreadable() const { return unreadable_; }

 private:
  std::filesystem::path folder_;
  std::function<void(std::string_view)> use_;
  BadFileCallback use_bad_;
  std::vector<std::string> names_;
  std::int64_t unreadable_ = 0;
};

}  // namespace snug::data
