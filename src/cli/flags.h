// The flags of the commands as they were given. They mean the same in every command.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace CLI {
class App;
}

namespace snug::cli {

// Numbers are kept as text until they are used, so that a bad one gets a sentence of ours.
struct Flags {
  std::string command;
  std::optional<std::string> model;   // or a recipe's file
  std::optional<std::string> folder;  // of a run
  std::string action;                 // of `snug data`
  std::string dataset;

  std::optional<std::string> batch;
  std::optional<std::string> microbatch;
  std::optional<std::string> min_microbatch;
  std::optional<std::string> statistics_group;
  std::optional<std::string> compress;
  std::optional<std::string> momentum_bits;
  std::optional<std::string> nesterov;
  bool drop_gradients = false;
  std::optional<std::string> budget;
  std::optional<std::string> budgets;
  std::optional<std::string> points;
  std::optional<std::string> costs;
  bool measure_costs = false;
  std::optional<std::string> allow;
  std::optional<std::string> classes;
  std::optional<std::string> image_size;
  std::optional<std::string> device;
  std::optional<std::string> threads;
  std::optional<std::string> workspace_limit;
  std::optional<std::string> precision;
  std::optional<std::string> rounding;
  std::optional<std::string> checkpoint;
  std::string accounting = "real";
  std::optional<std::string> nonzero;
  std::vector<std::string> frozen;

  std::optional<std::string> data;
  std::optional<std::string> epochs;
  std::optional<std::string> steps;
  std::optional<std::string> seed;
  std::optional<std::string> learning_rate;
  std::optional<std::string> momentum;
  std::optional<std::string> weight_decay;
  std::optional<std::string> clip_norm;
  std::optional<std::string> schedule;
  std::optional<std::string> warmup_steps;
  std::optional<std::string> milestones;
  std::optional<std::string> gamma;
  std::optional<std::string> augment;
  std::optional<std::string> eval_every;
  std::optional<std::string> snapshot_every;
  std::optional<std::string> keep;
  std::optional<std::string> init;
  std::optional<std::string> init_prefix;
  bool init_partial = false;
  std::optional<std::string> out;
  std::optional<std::string> to;
  bool resume = false;
  bool best = false;

  std::vector<std::string> disabled_passes;
  std::vector<std::string> enabled_passes;
  std::optional<std::string> dump_after;
  std::optional<std::string> save;  // where a plan goes
  std::optional<std::string> plan;  // a file that `save` made
  bool json = false;
  bool kernels = false;
  bool explain = false;
  bool timeline = false;
  std::optional<std::string> html;
  std::optional<std::string> torch_snapshot;
};

void add_plan_flags(CLI::App& app, Flags& flags);
void add_profile_flags(CLI::App& app, Flags& flags);
void add_train_flags(CLI::App& app, Flags& flags);
void add_sweep_flags(CLI::App& app, Flags& flags);
void add_eval_flags(CLI::App& app, Flags& flags);
void add_export_flags(CLI::App& app, Flags& flags);
void add_report_flags(CLI::App& app, Flags& flags);
void add_data_flags(CLI::App& app, Flags& flags);

// The whole number that a flag was given; UserError naming the flag when it is none or out of range.
std::int64_t parse_count(std::string_view flag, std::string_view text, std::int64_t least, std::int64_t most);
// The size that a flag was given, as in 6.7MB.
Bytes parse_size(std::string_view flag, std::string_view text);
// What stands between commas; `kind` says what that should be: "words", "numbers".
std::vector<std::string> parse_list(std::string_view flag, std::string_view kind, std::string_view text);

// --compress: 8, 4 or 2; nothing when it was not given.
std::optional<std::int64_t> parse_compress(const Flags& flags);
// --nesterov: yes or no; nothing when it was not given.
std::optional<bool> parse_nesterov(const Flags& flags);
// --momentum-bits: 8 or 32; nothing when it was not given.
std::optional<std::int64_t> parse_momentum_bits(const Flags& flags);

}  // namespace snug::cli
