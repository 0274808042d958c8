// The flags of the commands as they were given. They mean the same in every command.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace snug::cli {

// Numbers are kept as text until they are used, so that a bad one gets a sentence of ours.
struct Flags {
  std::string command;
  std::optional<std::string> model;
  std::optional<std::string> batch;
  std::optional<std::string> microbatch;
  std::optional<std::string> classes;
  std::optional<std::string> image_size;
  std::optional<std::string> threads;
  std::optional<std::string> workspace_limit;
  std::string precision = "fp32";
  std::string checkpoint = "none";
  std::string accounting = "real";
  std::vector<std::string> frozen;
  std::vector<std::string> disabled_passes;
  std::vector<std::string> enabled_passes;
  std::optional<std::string> dump_after;
  bool json = false;
  bool kernels = false;
};

void add_plan_flags(CLI::App& app, Flags& flags);
void add_profile_flags(CLI::App& app, Flags& flags);

// The whole number that a flag was given; UserError naming the flag when it is none or out of range.
std::int64_t parse_count(std::string_view flag, std::string_view text, std::int64_t least, std::int64_t most);

// UserError unless `value` is the one that is possible so far.
void require_value(std::string_view flag, std::string_view value, std::string_view possible);

}  // namespace snug::cli
