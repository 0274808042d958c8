#include "cli/man_page.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/help.h"
#include "frontend/zoo.h"
#include <snug/version.h>

namespace snug::cli {

namespace {

constexpr std::string_view kShared = "FLAGS OF SEVERAL COMMANDS";

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kEnvironment{
    {{"SNUG_DATA_DIR", "where data sets are kept (default: $XDG_CACHE_HOME/snug, else ~/.cache/snug)"},
     {"XDG_CACHE_HOME", "measured times of kernels are kept in its folder snug (default: ~/.cache)"},
     {"TMPDIR", "where the list of an image folder's files lies while a run trains"},
     {"SNUG_CUDA_PLUGIN", "the path of libsnug_cuda.so"},
     {"ONEDNN_MAX_CPU_ISA", "oneDNN's own limit on instructions; 'snug plan --kernels' says which are used"}}};

// Text that roff takes as it stands.
std::string roff(std::string_view text) {
  std::string result;
  if (text.starts_with('.')) result = "\\&";
  for (const char c : text) {
    switch (c) {
      case '\\':
        result += "\\e";
        break;
      case '-':
        result += "\\-";
        break;
      case '\'':
        result += "\\(aq";
        break;
      case '"':
        result += "\\(dq";
        break;
      case '`':
        result += "\\(ga";
        break;
      case '^':
        result += "\\(ha";
        break;
      case '~':
        result += "\\(ti";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }

void put_entry(std::string& out, std::string_view name, std::string_view description) {
  out += fmt::format(".TP\n{}\n{}\n", name, roff(description));
}

std::string title_of(const CLI::Option& option) {
  const std::string syntax = syntax_of(option);
  const std::size_t space = std::min(syntax.find(' '), syntax.size());
  const std::string value = syntax.substr(std::min(space + 1, syntax.size()));
  return value.empty() ? bold(syntax) : fmt::format("{} \\fI{}\\fR", bold(syntax.substr(0, space)), roff(value));
}

bool is_same(const CLI::Option& one, const CLI::Option& other) {
  return syntax_of(one) == syntax_of(other) && one.get_description() == other.get_description();
}

// A flag, and the commands that take it, each with these words.
struct Shared {
  std::string_view heading;
  const CLI::Option* option;
  std::vector<std::string> commands;
};

// Those of at least two commands, in the order of their first command's help.
std::vector<Shared> shared_flags(const std::vector<const CLI::App*>& commands) {
  std::vector<Shared> flags;
  for (const CLI::App* command : commands) {
    for (const FlagGroup& group : groups_of(*command)) {
      if (group.heading.empty()) continue;
      for (const CLI::Option* option : group.options) {
        const auto known = std::ranges::find_if(flags, [&](const Shared& flag) { return is_same(*flag.option, *option); });
        if (known == flags.end()) {
          flags.push_back({.heading = group.heading, .option = option, .commands = {command->get_name()}});
        } else {
          known->commands.push_back(command->get_name());
        }
      }
    }
  }
  std::erase_if(flags, [](const Shared& flag) { return flag.commands.size() < 2; });
  return flags;
}

// "train, plan and sweep", of at least two.
std::string enumerated(const std::vector<std::string>& words) {
  return fmt::format("{} and {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

void put_command(std::string& out, const CLI::App& command, const std::vector<Shared>& shared) {
  const CommandHelp& help = help_of(command.get_name());
  out += fmt::format(".SS \"{}\"\n{}\n", roff(fmt::format("snug {} {}", help.command, help.usage)),
                     roff(command.get_description() + "."));
  std::vector<std::string> others;
  for (const FlagGroup& group : groups_of(command)) {
    for (const CLI::Option* option : group.options) {
      if (std::ranges::any_of(shared, [&](const Shared& flag) { return is_same(*flag.option, *option); })) {
        others.push_back(bold(option->get_name()));
      } else {
        put_entry(out, title_of(*option), option->get_description());
      }
    }
  }
  out += fmt::format(".P\nUnder {}: {}.\n.P\n.EX\n", kShared, fmt::join(others, ", "));
  for (const std::string_view example : help.examples) out += fmt::format("  {}\n", roff(example));
  out += ".EE\n";
}

void put_shared(std::string& out, const std::vector<Shared>& shared) {
  out += fmt::format(".SH \"{}\"\n", kShared);
  std::vector<std::string_view> headings;
  for (const Shared& flag : shared) {
    if (flag.heading != kOwnFlags && std::ranges::find(headings, flag.heading) == headings.end())
      headings.push_back(flag.heading);
  }
  headings.push_back(kOwnFlags);
  for (const std::string_view heading : headings) {
    out += fmt::format(".SS \"{}\"\n", heading == kOwnFlags ? "other" : heading);
    for (const Shared& flag : shared) {
      if (flag.heading != heading) continue;
      put_entry(out, title_of(*flag.option),
                fmt::format("{}. Of {}.", flag.option->get_description(), enumerated(flag.commands)));
    }
  }
}

}  // namespace

std::string man_page(const CLI::App& root) {
  const std::vector<const CLI::App*> commands = root.get_subcommands([](const CLI::App*) { return true; });
  const std::vector<Shared> shared = shared_flags(commands);
  std::string out =
      fmt::format(".TH SNUG 1 \"\" \"snug {}\" \"User Commands\"\n.nh\n.ad l\n.SH NAME\nsnug \\- {}\n.SH SYNOPSIS\n", kVersion,
                  roff(root.get_description()));
  for (const CLI::App* command : commands) {
    const CommandHelp& help = help_of(command->get_name());
    out += fmt::format("{} {}\n.br\n", bold(fmt::format("snug {}", help.command)), roff(help.usage));
  }
  out += ".SH DESCRIPTION\n";
  out += roff(
      "Snug plans a training step before it runs it: every byte has its place, and what is planned is what is taken. With "
      "--budget it chooses how to fit: smaller microbatches with accumulated gradients, recomputed activations (checkpointing), "
      "and, where --allow says so, low precision and others.");
  out += "\n";
  for (const FlagGroup& group : groups_of(root)) {
    for (const CLI::Option* option : group.options) put_entry(out, title_of(*option), option->get_description());
  }
  out += ".SH COMMANDS\n";
  for (const CLI::App* command : commands) put_command(out, *command, shared);
  put_shared(out, shared);
  out += ".SH MODELS\n";
  for (const frontend::ZooEntry& entry : frontend::zoo_entries()) put_entry(out, bold(entry.pattern), entry.summary);
  out += ".SH \"EXIT STATUS\"\n";
  for (const auto& [code, meaning] : exit_codes()) put_entry(out, bold(code), meaning);
  out += ".SH ENVIRONMENT\n";
  for (const auto& [name, meaning] : kEnvironment) put_entry(out, bold(name), meaning);
  return out;
}

}  // namespace snug::cli
