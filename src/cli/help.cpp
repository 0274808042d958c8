#include "cli/help.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/error.h"
#include "frontend/zoo.h"
#include "settings/knobs.h"

namespace snug::cli {

namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kColumn = 27;  // where descriptions begin

struct CommandHelp {
  std::string_view command;
  std::string_view usage;  // behind the command's name
  std::array<std::string_view, 3> examples;
  bool shows_models;
};

constexpr std::array<CommandHelp, 9> kHelp{
    {{"train",
      "MODEL|recipe.toml [flags]",
      {"snug train small-cnn --budget 2MB --epochs 12",
       "snug train wrn-28-2 --data cifar10 --budget 24MB --epochs 30 --schedule cosine",
       "snug train --out runs/wrn-28-2 --resume"},
      true},
     {"plan",
      "MODEL [flags]",
      {"snug plan wrn-28-2 --batch 100 --budget 24MB --explain", "snug plan wrn-28-2 --batch 100 --budget 24MB --html wrn.html",
       "snug plan resnet-50 --batch 64 --microbatch 8 --kernels"},
      true},
     {"profile",
      "MODEL [flags]",
      {"snug profile wrn-28-2 --batch 100", "snug profile resnet-18 --batch 32 --freeze layer",
       "snug profile wrn-28-2 --batch 100 --accounting paper --checkpoint residual-2"},
      true},
     {"sweep",
      "MODEL [flags]",
      {"snug sweep wrn-28-2 --batch 100", "snug sweep wrn-28-2 --batch 100 --budgets 24MB..400MB --points 8",
       "snug sweep small-cnn --batch 100 --data embedded --json"},
      true},
     {"eval",
      "RUN [flags]",
      {"snug eval runs/wrn-28-2", "snug eval runs/wrn-28-2 --best", "snug eval runs/wrn-28-2 --json"},
      false},
     {"predict",
      "RUN FILES... [flags]",
      {"snug predict runs/wrn-28-2 photo.png", "snug predict runs/wrn-28-2 --best --top 5 *.jpg",
       "snug predict runs/wrn-28-2 photo.png --json"},
      false},
     {"export",
      "RUN --to FILE [flags]",
      {"snug export runs/wrn-28-2 --to weights.safetensors", "snug export runs/wrn-28-2 --best --to best.safetensors",
       "snug train resnet-50 --data photos --init weights.safetensors"},
      false},
     {"report",
      "RUN [flags]",
      {"snug report runs/wrn-28-2", "snug report runs/wrn-28-2 --html wrn.html",
       "snug plan wrn-28-2 --batch 100 --html wrn.html"},
      false},
     {"data",
      "get|info|check DATA [flags]",
      {"snug data get cifar10", "snug data info photos --image-size 224", "snug data check photos"},
      false}}};

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

void put_option(std::string& out, const CLI::Option& option) {
  const std::string name = option.get_name(option.get_positional());
  put_entry(out, option.get_type_name().empty() ? name : name + " " + option.get_type_name(), option.get_description());
}

// Knobs stand under the headings of their topics, in the order of the table; what belongs to the command alone comes last.
void put_options(std::string& out, const CLI::App& app) {
  const std::vector<const CLI::Option*> options = app.get_options();
  const auto put_those = [&](std::string_view heading, const auto& belongs) {
    const auto first = std::ranges::find_if(options, belongs);
    if (first == options.end()) return;
    if (!heading.empty()) out += fmt::format("\n{}\n", heading);
    for (const CLI::Option* option : options) {
      if (belongs(option)) put_option(out, *option);
    }
  };
  const auto topic_of = [](const CLI::Option* option) {
    return std::ranges::find(settings::kTopics, option->get_group(), settings::heading_of);
  };
  put_those("", [&](const CLI::Option* option) { return option->get_positional(); });
  bool has_topics = false;
  for (const settings::Topic& topic : settings::kTopics) {
    put_those(heading_of(topic), [&](const CLI::Option* option) { return topic_of(option) == &topic; });
    has_topics =
        has_topics || std::ranges::any_of(options, [&](const CLI::Option* option) { return topic_of(option) == &topic; });
  }
  put_those(has_topics ? "this command" : "",
            [&](const CLI::Option* option) { return !option->get_positional() && topic_of(option) == settings::kTopics.end(); });
}

const CommandHelp& help_of(const std::string& command) {
  const auto* const found =
      std::find_if(kHelp.begin(), kHelp.end(), [&](const CommandHelp& help) { return help.command == command; });
  SNUG_CHECK(found != kHelp.end(), "'snug {}' has no help", command);
  return *found;
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
  out += "\nexamples\n";
  for (const CommandHelp& help : kHelp) out += fmt::format("  {}\n", help.examples.front());
  put_models(out);
  out += "\nexit codes\n";
  put_entry(out, "0", "done");
  put_entry(out, "1", "a defect of Snug, or a machine that gives no memory or takes no output");
  put_entry(out, "2", "bad input: a flag, a file, a folder");
  put_entry(out, "3", "does not fit the budget; the message says what would");
  put_entry(out, "130, 143", "stopped by Ctrl-C or SIGTERM, after saving");
  return out;
}

std::string command_help(const CLI::App& app) {
  const CommandHelp& help = help_of(app.get_name());
  std::string out = fmt::format("snug {0}: {1}\n\nusage: snug {0} {2}\n\n", help.command, app.get_description(), help.usage);
  put_options(out, app);
  out += "\nexamples\n";
  for (const std::string_view example : help.examples) out += fmt::format("  {}\n", example);
  if (help.shows_models) put_models(out);
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
