// What --help prints: purpose, usage, flags, examples, models; and what the manual page takes from it.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace snug::cli {

struct CommandHelp {
  std::string_view command;
  std::string_view usage;  // behind the command's name
  std::array<std::string_view, 3> examples;
  bool shows_models;
};
const CommandHelp& help_of(const std::string& command);

// A command's arguments and flags in the order in which help lists them: first its arguments, without a heading, then a group for
// each topic of the table of knobs, then what belongs to the command alone, under kOwnFlags.
struct FlagGroup {
  std::string_view heading;
  std::vector<const CLI::Option*> options;
};
inline constexpr std::string_view kOwnFlags = "this command";
std::vector<FlagGroup> groups_of(const CLI::App& app);

// "--batch N", "MODEL"
std::string syntax_of(const CLI::Option& option);

// A code, and what it means.
std::span<const std::pair<std::string_view, std::string_view>> exit_codes();

void set_help(CLI::App& app);

}  // namespace snug::cli
