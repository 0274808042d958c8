// The flags of the commands as they were given. They mean the same in every command.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "settings/told.h"

namespace CLI {
class App;
}

namespace snug::cli {

// Numbers are kept as text until they are used, so that a bad one gets a sentence of ours.
struct Flags {
  std::string command;
  std::optional<std::string> model;   // or a recipe's file
  std::optional<std::string> folder;  // of a run
  std::vector<std::string> files;     // of images, or snapshots
  std::string hypotheses;             // a file of sentences, of `snug bleu`
  std::vector<std::string> references;
  std::string action;  // of `snug data`
  std::string dataset;

  // What flags of the table of knobs were given, by key (settings/knobs.h).
  settings::Told knobs;
  bool has(std::string_view key) const { return knobs.contains(key); }

  std::optional<std::string> budgets;
  std::optional<std::string> points;
  std::optional<std::string> timed_steps;
  std::optional<std::string> costs;
  bool measure_costs = false;
  std::string accounting = "real";
  std::optional<std::string> out;
  std::optional<std::string> to;
  std::optional<std::string> weights;
  std::optional<std::string> last;
  bool resume = false;
  bool best = false;
  std::optional<std::string> top;
  std::optional<std::string> prompt;
  std::optional<std::string> tokens;
  std::optional<std::string> context;
  std::optional<std::string> temperature;
  std::optional<std::string> top_k;
  std::optional<std::string> top_p;
  std::optional<std::string> tokenize;
  bool lowercase = false;
  bool multi_bleu = false;

  std::vector<std::string> disabled_passes;
  std::optional<std::string> dump_after;
  std::optional<std::string> save;  // where a plan goes
  std::optional<std::string> plan;  // a file that `save` made
  bool json = false;
  bool kernels = false;
  bool explain = false;
  bool timeline = false;
  std::optional<std::string> html;
  std::optional<std::string> torch_snapshot;

  // Of the program itself.
  bool man = false;
  std::optional<std::string> completion;
};

// What a flag takes is named in capitals, as in FILE or N, or lists its words, as in bash|zsh (cli/argument_values.h).
void add_program_flags(CLI::App& app, Flags& flags);

void add_plan_flags(CLI::App& app, Flags& flags);
void add_profile_flags(CLI::App& app, Flags& flags);
void add_train_flags(CLI::App& app, Flags& flags);
void add_sweep_flags(CLI::App& app, Flags& flags);
void add_eval_flags(CLI::App& app, Flags& flags);
void add_predict_flags(CLI::App& app, Flags& flags);
void add_generate_flags(CLI::App& app, Flags& flags);
void add_export_flags(CLI::App& app, Flags& flags);
void add_average_flags(CLI::App& app, Flags& flags);
void add_bleu_flags(CLI::App& app, Flags& flags);
void add_report_flags(CLI::App& app, Flags& flags);
void add_data_flags(CLI::App& app, Flags& flags);

}  // namespace snug::cli
