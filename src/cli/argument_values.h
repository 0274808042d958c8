// What may be typed for a flag or an argument: for completion in a shell.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class Option;
}

namespace snug::cli {

enum class Paths : std::uint8_t { none, files, folders, recipes };

struct ArgumentValues {
  std::vector<std::string> words;
  Paths paths = Paths::none;
  bool is_list = false;  // of the words, with commas between them

  friend bool operator==(const ArgumentValues&, const ArgumentValues&) = default;
};

bool takes_value(const CLI::Option& option);

// From what help calls the value (FILE, FOLDER, RUN, DATA, MODEL, PASS; a word in small letters stands for itself, and a bar lies
// between two of them) and from the table of knobs.
ArgumentValues values_of(const CLI::Option& option);

}  // namespace snug::cli
