#include "cli/help.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "frontend/zoo.h"

namespace snug::cli {

namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kColumn = 26;  // where descriptions begin

constexpr std::array<std::string_view, 3> kPlanExamples{"snug plan wrn-28-2 --batch 100",
                                                        "snug plan resnet-50 --batch 64 --microbatch 8 --kernels",
                                                        "snug plan small-cnn --batch 32 --json"};
constexpr std::array<std::string_view, 3> kProfileExamples{"snug profile wrn-28-2 --batch 100",
                                                           "snug profile resnet-18 --batch 32 --freeze layer",
                                                           "snug profile vgg-16 --batch 8 --classes 10 --image-size 64"};

// A name and its description, wrapped so that it stays in its column.
void put_entry(std::string& out, std::string_view name, std::string_view description) {
  std::string line = fmt::format("  {:<{}}", name, kColumn - 2);
  while (!description.empty()) {
    const std::string_view word = description.substr(0, description.find(' '));
    if (line.size() + word.size() > kWidth && line.size() > kColumn) {
      out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
      line = std::string(kColumn, ' ');
    }
    line += word;
    line += ' ';
    description.remove_prefix(std::min(description.size(), word.size() + 1));
  }
  out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

void put_options(std::string& out, const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name(option->get_positional());
    put_entry(out, option->get_type_name().empty() ? name : name + " " + option->get_type_name(), option->get_description());
  }
}

std::span<const std::string_view> examples_of(const std::string& command) {
  if (command == "plan") return kPlanExamples;
  if (command == "profile") return kProfileExamples;
  return {};
}

void put_models(std::string& out) {
  out += "\nmodels\n";
  for (const frontend::ZooEntry& entry : frontend::zoo_entries()) put_entry(out, entry.pattern, entry.summary);
}

std::string root_help(const CLI::App& app) {
  std::string out = fmt::format("snug {}\n\nusage: snug COMMAND ...           snug COMMAND --help tells more\n\ncommands\n",
                                app.get_description());
  for (const CLI::App* command : app.get_subcommands({})) put_entry(out, command->get_name(), command->get_description());
  out += "\nflags\n";
  put_options(out, app);
  out += fmt::format("\nexamples\n  {}\n  {}\n", kPlanExamples.front(), kProfileExamples.front());
  put_models(out);
  return out;
}

std::string command_help(const CLI::App& app) {
  const std::string& name = app.get_name();
  std::string out = fmt::format("snug {0}: {1}\n\nusage: snug {0} MODEL --batch N [flags]\n\n", name, app.get_description());
  put_options(out, app);
  out += "\nexamples\n";
  for (const std::string_view example : examples_of(name)) out += fmt::format("  {}\n", example);
  put_models(out);
  return out;
}

}  // namespace

void set_help(CLI::App& app) {
  app.set_help_flag("-h,--help", "print this");
  app.formatter_fn([](const CLI::App* shown, const std::string& /*name*/, CLI::AppFormatMode /*mode*/) {
    return shown->get_parent() == nullptr ? root_help(*shown) : command_help(*shown);
  });
}

}  // namespace snug::cli
