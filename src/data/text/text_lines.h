// A text file line by line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "data/file.h"

namespace snug::data {

class TextLines {
 public:
  static constexpr std::size_t kLongestLine = 16'000'000;

  explicit TextLines(const std::filesystem::path& path);

  // The next line without its end, which is a line feed or the end of the file; nothing after the last. It is there until the
  // next call. UserError for a line beyond kLongestLine and where the file cannot be read.
  std::optional<std::string_view> next();
  std::int64_t lines() const { return lines_; }  // so far
  // "'hypotheses.txt'"
  std::string source() const;

 private:
  bool fill();

  std::filesystem::path path_;
  File file_;
  std::int64_t offset_ = 0;  // of the first byte that was not read
  std::int64_t lines_ = 0;
  std::string read_;  // of the file; what is before begin_ has been given
  std::size_t begin_ = 0;
};

}  // namespace snug::data
