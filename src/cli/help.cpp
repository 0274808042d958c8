#include "cli/help.h"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/error.h"
#include "frontend/zoo.h"
#include "settings/knobs.h"

namespace snug::cli {

namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kColumn = 27;  // where descriptions begin

constexpr std::array<CommandHelp, 12> kHelp{
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
     {"generate",
      "RUN --prompt TEXT [flags]",
      {"snug generate runs/gpt-small --prompt 'To be'", "snug generate runs/gpt-small --prompt 'To be' --temperature 0",
       "snug generate runs/gpt-small --prompt 'To be' --tokens 50 --top-k 40 --seed 2"},
      false},
     {"export",
      "RUN --to FILE [flags]",
      {"snug export runs/wrn-28-2 --to weights.safetensors", "snug export runs/wrn-28-2 --best --to best.safetensors",
       "snug train resnet-50 --data photos --init weights.safetensors"},
      false},
     {"average",
      "RUN --last N --to FILE [flags]",
      {"snug average runs/gpt-small --last 5 --to average.safetensors",
       "snug average runs/gpt-small/snapshots/*.safetensors --to average.safetensors",
       "snug eval runs/gpt-small --weights average.safetensors"},
      false},
     {"bleu",
      "FILE --reference FILE [flags]",
      {"snug bleu translated.de --reference newstest2014.de", "snug bleu translated.de --reference a.de --reference b.de --json",
       "snug bleu translated.tok.de --reference newstest2014.tok.de --multi-bleu"},
      false},
     {"report",
      "RUN [flags]",
      {"snug report runs/wrn-28-2", "snug report runs/wrn-28-2 --html wrn.html",
       "snug plan wrn-28-2 --batch 100 --html wrn.html"},
      false},
     {"data",
      "get|info|check|tokens|learn DATA [flags]",
      {"snug data get cifar10", "snug data check photos", "snug data learn novel.txt --vocabulary 2048 --out bpe"},
      false}}};

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kExitCodes{
    {{"0", "done"},
     {"1", "a defect of Snug, or a machine that gives no memory or takes no output"},
     {"2", "bad input: a flag, a file, a folder"},
     {"3", "does not fit the budget; the message says what would"},
     {"130, 143", "stopped by Ctrl-C or SIGTERM, after saving"}}};

// A name and its description, wrapped so that it stays in its column; below a name that takes the column's place.
void put_entry(std::string& out, std::string_view name, std::string_view description) {
  std::string line = fmt::format("  {:<{}}", name, kColumn - 2);
  if (line.back() != ' ') {
    out += line + "\n";
    line = std::string(kColumn, ' ');
  }
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
  const std::vector<FlagGroup> groups = groups_of(app);
  const bool has_topics =
      std::ranges::any_of(groups, [](const FlagGroup& group) { return !group.heading.empty() && group.heading != kOwnFlags; });
  for (const FlagGroup& group : groups) {
    if (!group.heading.empty() && (group.heading != kOwnFlags || has_topics)) out += fmt::format("\n{}\n", group.heading);
    for (const CLI::Option* option : group.options) put_entry(out, syntax_of(*option), option->get_description());
  }
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
  for (const auto& [code, meaning] : kExitCodes) put_entry(out, code, meaning);
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

const CommandHelp& help_of(const std::string& command) {
  const auto* const found =
      std::find_if(kHelp.begin(), kHelp.end(), [&](const CommandHelp& help) { return help.command == command; });
  SNUG_CHECK(found != kHelp.end(), "'snug {}' has no help", command);
  return *found;
}

std::vector<FlagGroup> groups_of(const CLI::App& app) {
  std::vector<FlagGroup> groups{{.heading = "", .options = {}}};
  for (const settings::Topic& topic : settings::kTopics) groups.push_back({.heading = heading_of(topic), .options = {}});
  groups.push_back({.heading = kOwnFlags, .options = {}});
  for (const CLI::Option* option : app.get_options()) {
    const auto topic = std::ranges::find(groups, std::string_view(option->get_group()), &FlagGroup::heading);
    FlagGroup& group = option->get_positional() ? groups.front() : topic == groups.end() ? groups.back() : *topic;
    group.options.push_back(option);
  }
  std::erase_if(groups, [](const FlagGroup& group) { return group.options.empty(); });
  return groups;
}

std::string syntax_of(const CLI::Option& option) {
  std::string name = option.get_name(option.get_positional());
  const std::string type = option.get_type_name();
  if (type.empty()) return name;
  return option.get_positional() ? type : name + " " + type;
}

std::span<const std::pair<std::string_view, std::string_view>> exit_codes() { return kExitCodes; }

void set_help(CLI::App& app) {
  app.set_help_flag("-h,--help", "print this");
  app.formatter_fn([](const CLI::App* shown, const std::string& /*name*/, CLI::AppFormatMode /*mode*/) {
    return shown->get_parent() == nullptr ? root_help(*shown) : command_help(*shown);
  });
}

}  // namespace snug::cli
