// A recipe: everything a training run is told, as TOML. What is not told is left to the planner or the model.
//
//   model = "wrn-28-2"
//   data = "cifar10"
//   batch = 100
//   budget = "24MB"
//   epochs = 200
//
//   [optimizer]
//   learning_rate = 0.1
//
//   [schedule]
//   kind = "step"
//   milestones = [60, 120, 160]
//   gamma = 0.2
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "passes/methods.h"

namespace snug::settings {

// What is not told is as suits the model, and then as suits the optimizer (settings/optimizer.h).
struct OptimizerRecipe {
  std::optional<std::string> kind;  // sgd or adamw
  std::optional<double> learning_rate;
  std::optional<double> momentum;  // of sgd
  std::optional<bool> nesterov;
  std::optional<double> beta1;  // of adamw
  std::optional<double> beta2;
  std::optional<double> epsilon;
  std::optional<double> weight_decay;
  std::optional<bool> decay_norms;  // adamw: the weight decay is for parameters of one dimension, too
  std::optional<double> clip_norm;

  friend bool operator==(const OptimizerRecipe&, const OptimizerRecipe&) = default;
};

struct ScheduleRecipe {
  std::string kind = "constant";   // constant, step, cosine, linear or inverse-sqrt
  std::int64_t warmup_steps = 0;   // the rate rises linearly
  double warmup_from = 0;          // ... from this one
  std::vector<double> milestones;  // epochs, rising; `step`: after each the rate is multiplied by gamma
  double gamma = 0.1;
  double final = 0;  // `cosine`, `linear`: the share of the learning rate that is left at the end

  friend bool operator==(const ScheduleRecipe&, const ScheduleRecipe&) = default;
};

// How the pattern moves of weights that are stored by their nonzeros (Methods::nonzero). What is not told is as in the paper
// (Table 5), whose schedule is for 200 epochs.
struct SparseRecipe {
  std::string method = "dsr";  // fixed, set or dsr
  // After how many steps the pattern is rewired: the first number until the first milestone, in epochs, and so on; 0: never.
  std::vector<double> rewire_every = {100, 200, 400, 800, 0};
  std::vector<double> rewire_milestones = {25, 80, 140, 190};
  double rewire_fraction = 0.01377866;  // of all weights of the sparse tensors, zero or not
  double threshold = 1e-3;              // weights below it are pruned, in the beginning

  friend bool operator==(const SparseRecipe&, const SparseRecipe&) = default;
};

struct Recipe {
  std::string model;
  std::optional<std::int64_t> classes;     // nothing: the data's or the model's own
  std::optional<std::int64_t> image_size;  // nothing: the data's or the model's own
  std::optional<std::string> tokenizer;    // of texts; nothing: bytes
  std::optional<std::int64_t> length;      // tokens of an example; nothing: the model's context
  std::optional<std::int64_t> vocabulary;  // of a language model; nothing: its own, else the tokenizer's
  std::string data = "embedded";
  bool skip_bad_images = false;  // images that cannot be read are left out
  double label_smoothing = 0;
  std::optional<bool> augment;  // mirrored and shifted images; nothing: as the data allows
  std::int64_t batch = 100;
  Methods methods;  // of memory; what is not told is the planner's choice
  std::optional<std::int64_t> min_microbatch;
  std::optional<std::string> rounding;            // of updates of 16 bits, nearest or stochastic; nothing: as suits the precision
  std::optional<std::int64_t> loss_scale_growth;  // steps without overflow after which fp16's loss scale doubles; nothing: 2000
  std::optional<Bytes> budget_bytes;              // written budget = "24MB"
  std::optional<Bytes> process_budget;            // of the whole process; `budget_bytes` then follows from it
  std::vector<std::string> allow = {"exact", "reassociated", "microbatch"};
  std::string device = "cpu";
  std::int64_t threads = 0;            // 0: all cores
  std::uint64_t seed = 0;              // below 2^63: TOML's whole numbers end there
  std::optional<std::int64_t> epochs;  // one of the two, or neither: one epoch
  std::optional<std::int64_t> steps;
  std::optional<std::int64_t> eval_every;      // steps; nothing: after every epoch
  std::optional<std::int64_t> snapshot_every;  // steps; nothing: after every epoch
  std::int64_t keep = 2;                       // newest snapshots kept beside the best
  std::vector<std::string> freeze;             // prefixes of parameter names
  std::optional<std::string> init;             // weights to begin with: a file, an index or a folder
  std::optional<std::string> init_prefix;      // what names there begin with, and the model's do not
  bool init_strict = false;                    // all of them, and none drawn anew for other classes
  bool init_partial = false;                   // they need not be all, and there may be more
  OptimizerRecipe optimizer;
  ScheduleRecipe schedule;
  SparseRecipe sparse;

  friend bool operator==(const Recipe&, const Recipe&) = default;
};

// UserError with one sentence, naming `source` and the line, when the text is no recipe: an unknown key (with the nearest known
// one), a wrong type, a number out of range.
Recipe parse_recipe(std::string_view text, std::string_view source = "recipe");
Recipe read_recipe(const std::filesystem::path& path);

// What parse_recipe also asks of a recipe that comes from elsewhere: ranges, and what does not go together. The refusal names
// keys, or flags to whoever gave flags. The knobs themselves are in settings/knobs.h.
enum class SaidBy : std::uint8_t { recipe, flags };
void check_recipe(const Recipe& recipe, SaidBy said_by);

// Canonical TOML: every value that is set, in a fixed order. parse_recipe(print_recipe(r)) == r.
std::string print_recipe(const Recipe& recipe);

}  // namespace snug::settings
