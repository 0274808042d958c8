#include "cli/cli.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <exception>
#include <string_view>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/nearest.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/failure.h"
#include "cli/flags.h"
#include "cli/help.h"
#include "cli/man_page.h"
#include "cli/output.h"
#include <snug/version.h>

namespace snug::cli {

namespace {

struct Command {
  std::string_view name;
  std::string_view purpose;
  void (*add_flags)(CLI::App&, Flags&);
  void (*run)(const Flags&);
};

constexpr std::array<Command, 12> kCommands{
    {{"train", "trains a model inside a budget of bytes", add_train_flags, run_train},
     {"plan", "how much memory and time training would take; nothing runs", add_plan_flags, run_plan},
     {"profile", "where a model's bytes and FLOPs go", add_profile_flags, run_profile},
     {"sweep", "memory against throughput, measured budget by budget", add_sweep_flags, run_sweep},
     {"eval", "the accuracy of a run's weights", add_eval_flags, run_eval},
     {"predict", "what a run's weights see in image files", add_predict_flags, run_predict},
     {"generate", "what a run's language model writes", add_generate_flags, run_generate},
     {"export", "a run's weights as a safetensors file", add_export_flags, run_export},
     {"average", "the mean of the weights of a run's last snapshots", add_average_flags, run_average},
     {"bleu", "how near translations are to reference translations", add_bleu_flags, run_bleu},
     {"report", "a run as one page: its memory, value by value, and its training", add_report_flags, run_report},
     {"data", "gets data sets and says what is in them", add_data_flags, run_data}}};

std::string command_names() {
  std::string names;
  for (std::size_t i = 0; i < kCommands.size(); ++i) {
    if (i > 0) names += i + 1 < kCommands.size() ? ", " : " and ";
    names += kCommands[i].name;
  }
  return names;
}

// Of a command, as they are typed.
std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// "; did you mean --steps?" of "--step" or "--step=5".
std::string flag_meant(const CLI::App& app, const std::string& text) {
  const std::vector<std::string> names = flag_names(app);
  return did_you_mean(text.substr(0, text.find('=')), std::vector<std::string_view>(names.begin(), names.end()));
}

// The same of a command's name; where none is near, all of them.
std::string command_meant(const std::string& text) {
  std::array<std::string_view, kCommands.size()> names;
  std::ranges::transform(kCommands, names.begin(), &Command::name);
  const std::string meant = did_you_mean(text, names);
  return meant.empty() ? "; the commands are " + command_names() : meant;
}

// What the parser did not know what to do with, as a sentence.
void refuse_leftovers(const CLI::App& root, const CLI::App* command) {
  const auto is_flag = [](const std::string& text) { return text.size() > 1 && text.starts_with('-'); };
  const std::vector<std::string> before = root.remaining();
  if (const auto flag = std::find_if(before.begin(), before.end(), is_flag); flag != before.end()) {
    throw_user_error("there is no flag '{}'{} (see 'snug --help')", *flag, flag_meant(root, *flag));
  }
  if (!before.empty()) {
    throw_user_error("there is no command '{}'{} (see 'snug --help')", before.front(), command_meant(before.front()));
  }
  if (command == nullptr) throw_user_error("no command is given; the commands are {} (see 'snug --help')", command_names());
  const std::vector<std::string> rest = command->remaining();
  if (const auto flag = std::find_if(rest.begin(), rest.end(), is_flag); flag != rest.end()) {
    throw_user_error("'snug {0}' has no flag '{1}'{2} (see 'snug {0} --help')", command->get_name(), *flag,
                     flag_meant(*command, *flag));
  }
  if (!rest.empty())
    throw_user_error("'snug {0}' was given '{1}', an unexpected argument (see 'snug {0} --help')", command->get_name(),
                     rest.front());
}

// CLI11 reads --json=no as a word about --json; here a flag that takes no value is given or not.
void refuse_values_of_switches(const CLI::App& root, const std::vector<std::string>& arguments) {
  std::vector<const CLI::App*> apps = root.get_subcommands([](const CLI::App*) { return true; });
  apps.push_back(&root);
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    if (!argument.starts_with("--") || equals == std::string::npos) continue;
    const std::string name = argument.substr(0, equals);
    for (const CLI::App* app : apps) {
      const CLI::Option* option = app->get_option_no_throw(name);
      if (option != nullptr && option->get_items_expected_max() == 0)
        throw_user_error("{0} takes no value; write {0} alone", name);
    }
  }
}

void execute(std::vector<std::string> arguments) {
  CLI::App root("trains neural networks inside the memory you give it", "snug");
  Flags flags;
  root.set_version_flag("--version", fmt::format("snug {}", kVersion), "print the version");
  add_program_flags(root, flags);
  root.allow_extras();
  root.require_subcommand(0, 1);
  for (const Command& command : kCommands) {
    CLI::App& app = *root.add_subcommand(std::string(command.name), std::string(command.purpose));
    app.allow_extras();
    command.add_flags(app, flags);
  }
  for (CLI::App* app : root.get_subcommands({})) set_help(*app);
  set_help(root);

  refuse_values_of_switches(root, arguments);
  std::reverse(arguments.begin(), arguments.end());  // the order in which the parser takes them
  try {
    root.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    write_out(root.help());
    return;
  } catch (const CLI::CallForVersion& version) {
    write_out(fmt::format("{}\n", version.what()));
    return;
  } catch (const CLI::ArgumentMismatch& error) {
    // Its message begins with the flag's name and a colon. Too many values cannot be: the last one counts.
    const std::string_view message = error.what();
    throw_user_error("{} needs a value", message.substr(0, message.find(':')));
  } catch (const CLI::ParseError& error) {
    throw UserError(error.what());
  }
  if (flags.man) return write_out(man_page(root));
  if (flags.completion) return write_out(completion(root, *flags.completion));
  const std::vector<CLI::App*> chosen = root.get_subcommands();
  refuse_leftovers(root, chosen.empty() ? nullptr : chosen.front());
  flags.command = chosen.front()->get_name();
  for (const Command& command : kCommands) {
    if (command.name != flags.command) continue;
    refuse_run_files(flags);
    command.run(flags);
  }
}

// Whatever else is wrong with them.
bool asks_for_json(const std::vector<std::string>& arguments) {
  return std::find(arguments.begin(), std::ranges::find(arguments, "--"), "--json") != std::ranges::find(arguments, "--");
}

}  // namespace

int run(const std::vector<std::string>& arguments) {
  // A reader that leaves early (`snug plan ... | head -1`) is then a failed write, which `failure` knows, and not a signal.
  std::signal(SIGPIPE, SIG_IGN);
  // ... and so is a file that grows past a limit.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    execute(arguments);
    return kDone;
  } catch (...) {
    // What is on standard output already stays the only object there.
    return report_failure(std::current_exception(),
                          asks_for_json(arguments) && !has_written() ? FailureJson::printed : FailureJson::none);
  }
}

}  // namespace snug::cli
