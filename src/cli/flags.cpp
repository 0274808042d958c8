#include "cli/flags.h"

#include <charconv>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "settings/recipe_keys.h"

namespace snug::cli {

namespace {

template <typename T>
void add(CLI::App& app, const std::string& name, T& value, const std::string& type, const std::string& description) {
  app.add_option(name, value, description)->type_name(type)->take_last();
}

void add_each(CLI::App& app, const std::string& name, std::vector<std::string>& values, const std::string& type,
              const std::string& description) {
  app.add_option(name, values, description)->type_name(type)->allow_extra_args(false);
}

void add_json_flag(CLI::App& app, Flags& flags) { app.add_flag("--json", flags.json, "print one JSON object and nothing else"); }

// Which program: the model and how it is trained.
void add_program_flags(CLI::App& app, Flags& flags) {
  add(app, "--batch", flags.batch, "N", "examples per step (default: 100)");
  add(app, "--microbatch", flags.microbatch, "N", "examples in memory at a time (default: all, or what the budget asks for)");
  add(app, "--allow", flags.allow, "LIST",
      "how far a plan may go for a budget: exact (the same bits), reassociated (sums in another order), microbatch (statistics "
      "of parts of the batch) (default: these three); beside them precision (16 bits), compressed (activations are stored in "
      "4 bits until backward), sparse (part of the weights, where nothing else fits)");
  add(app, "--min-microbatch", flags.min_microbatch, "N", "models with batch norm are not split below this (default: 10)");
  add(app, "--statistics-group", flags.statistics_group, "N",
      "examples whose batch-norm statistics are taken together, as in microbatches of N (default: all in memory)");
  add(app, "--checkpoint", flags.checkpoint, "STRATEGY",
      "what is kept for backward, which recomputes the rest: none, no-bn, sqrt, log, chen, every-M, residual-M, residual-M*, "
      "or with at most that much beside the states optimal:BYTES (least time) or greedy:BYTES (no chain needed) (default: none, "
      "or what the budget asks for)");
  add(app, "--compress", flags.compress, "BITS",
      "activations are stored in 8, 4 or 2 bits per element until backward, rounded stochastically; on the CPU so far (default: "
      "as they are)");
  add(app, "--momentum", flags.momentum, "M", "momentum: fraction of the last update kept (default: 0.9)");
  add(app, "--momentum-bits", flags.momentum_bits, "BITS",
      "8: the momentum of large parameters is kept in codes of 8 bits; on the CPU so far (default: 32, as the parameters)");
  add(app, "--nesterov", flags.nesterov, "YES|NO", "Nesterov's momentum, or plain heavy-ball (default: yes)");
  app.add_flag("--drop-gradients", flags.drop_gradients,
               "add gradients to the momentum at once, so that they are not kept; with --nesterov no, on the CPU so far");
  add(app, "--clip-norm", flags.clip_norm, "N", "clip the gradients' total norm to this (default: no clipping)");
  add(app, "--workspace-limit", flags.workspace_limit, "BYTES",
      "largest workspace of a kernel, such as 16MB (default: no limit)");
  add(app, "--precision", flags.precision, "TYPE", "what values are stored in: fp32, bf16 or fp16 (default: fp32)");
  add(app, "--nonzero", flags.nonzero, "SHARE",
      "share of the convolutions' weights, all but the first, that is stored and trained, as in 0.3 (default: 1)");
  add(app, "--rounding", flags.rounding, "HOW",
      "of updates of 16 bits: nearest, or stochastic, so that small ones survive (default: stochastic in bf16)");
  add(app, "--classes", flags.classes, "N", "outputs of the classifier (default: the data's or the model's own)");
  add(app, "--image-size", flags.image_size, "N", "height and width of images (default: the data's or the model's own)");
  add_each(app, "--freeze", flags.frozen, "PREFIX", "parameters whose names begin with PREFIX are not trained; may be repeated");
  add(app, "--threads", flags.threads, "N", "threads that will run it (default: all cores)");
  add(app, "--costs", flags.costs, "FILE",
      "node times that predictions are made from; none: a fixed table (default: this machine's, once they were measured)");
}

void add_budget_flag(CLI::App& app, Flags& flags) {
  add(app, "--budget", flags.budget, "BYTES", "memory that training may take, as in 24MB or 6.4MiB (default: no limit)");
}

void add_data_flag(CLI::App& app, Flags& flags, const std::string& fallback) {
  add(app, "--data", flags.data, "DATA",
      "embedded, cifar10, or a folder of images: FOLDER/train/CLASS/*.png (default: " + fallback + ")");
}

void add_device_flag(CLI::App& app, Flags& flags) { add(app, "--device", flags.device, "DEVICE", "cpu or cuda (default: cpu)"); }

void add_compiler_flags(CLI::App& app, Flags& flags) {
  add_each(app, "--disable-pass", flags.disabled_passes, "PASS", "leave out a memory method; may be repeated");
  add_each(app, "--enable-pass", flags.enabled_passes, "PASS",
           "one that runs on request: compress_activations, offload_activations, drop_gradients, fuse_update, prepack_weights");
}

void add_run_folder(CLI::App& app, Flags& flags) {
  add(app, "RUN", flags.folder, "", "the folder of a run, as 'snug train --out' made it");
  app.add_flag("--best", flags.best, "the weights of the best evaluation instead of the last ones");
}

}  // namespace

void add_plan_flags(CLI::App& app, Flags& flags) {
  add(app, "MODEL", flags.model, "", "a model of the zoo, see below, or a recipe's file (recipe.toml)");
  add_program_flags(app, flags);
  add_data_flag(app, flags, "the recipe's, or images of the model's own shape");
  add_device_flag(app, flags);
  add_budget_flag(app, flags);
  app.add_flag("--measure-costs", flags.measure_costs, "first measure this model's node times on this machine");
  app.add_flag("--explain", flags.explain, "what one more MB buys, and what each method saves");
  app.add_flag("--kernels", flags.kernels, "list what runs each op, and which kernels refused");
  add(app, "--save", flags.save, "FILE", "keep the plan, for 'snug train --plan FILE'");
  add_json_flag(app, flags);
  app.add_flag("--timeline", flags.timeline, "with --json: also every node, and where and how long every value lives");
  add(app, "--html", flags.html, "FILE", "also write the memory report: one page with every value, for a browser");
  add(app, "--torch-snapshot", flags.torch_snapshot, "FILE", "also write a memory snapshot for PyTorch's viewer (memory_viz)");
  add(app, "--dump-after", flags.dump_after, "PASS", "print the program after a pass, and nothing else");
  add_compiler_flags(app, flags);
}

void add_profile_flags(CLI::App& app, Flags& flags) {
  add(app, "MODEL", flags.model, "", "a model of the zoo, see below, or a recipe's file (recipe.toml)");
  add_program_flags(app, flags);
  add_data_flag(app, flags, "the recipe's, or images of the model's own shape");
  add_device_flag(app, flags);
  add_budget_flag(app, flags);
  add(app, "--accounting", flags.accounting, "RULES",
      "what counts as memory: real (a plan), or paper (the rules of Sohoni et al.; not for a recipe)");
  add_json_flag(app, flags);
  add_compiler_flags(app, flags);
}

void add_train_flags(CLI::App& app, Flags& flags) {
  add(app, "MODEL", flags.model, "", "a model of the zoo, see below, or a recipe's file (recipe.toml)");
  add_data_flag(app, flags, "embedded");
  add_program_flags(app, flags);
  add_budget_flag(app, flags);
  add(app, "--epochs", flags.epochs, "N", "times through the data (default: 1)");
  add(app, "--steps", flags.steps, "N", "batches to train on, instead of epochs");
  add_device_flag(app, flags);
  add(app, "--seed", flags.seed, "N", "random seed (default: 0)");
  add(app, "--learning-rate", flags.learning_rate, "R", "learning rate of SGD (default: 0.1)");
  add(app, "--weight-decay", flags.weight_decay, "D", "weight decay (default: 0.0005)");
  add(app, "--schedule", flags.schedule, "KIND", "the learning rate over time: constant, step or cosine (default: constant)");
  add(app, "--warmup-steps", flags.warmup_steps, "N", "steps in which the learning rate rises from 0");
  add(app, "--milestones", flags.milestones, "E,E", "epochs after which 'step' multiplies the rate by --gamma");
  add(app, "--gamma", flags.gamma, "G", "factor of the learning rate at each of --milestones (default: 0.1)");
  add(app, "--augment", flags.augment, "YES|NO", "mirrored and shifted images (default: yes, but not for the embedded digits)");
  add(app, "--init", flags.init, "FILE",
      "weights to start from: a safetensors file, the index.json of a sharded one, or a folder with either; a classifier of "
      "other classes starts from random values");
  add(app, "--init-prefix", flags.init_prefix, "PREFIX", "what names in --init begin with and the model's do not, as in model.");
  app.add_flag("--init-partial", flags.init_partial,
               "take from --init what the model has; what is not there starts from initial values");
  add(app, "--eval-every", flags.eval_every, "STEPS", "how often to test (default: after every epoch)");
  add(app, "--snapshot-every", flags.snapshot_every, "STEPS", "how often to save (default: after every epoch)");
  add(app, "--keep", flags.keep, "N", "newest snapshots that stay, beside the best (default: 2)");
  add(app, "--out", flags.out, "FOLDER", "where the run is kept (default: runs/MODEL)");
  app.add_flag("--resume", flags.resume, "resume the run in --out from its last snapshot");
  add(app, "--plan", flags.plan, "FILE", "run this plan, made with 'snug plan --save FILE' for the same model, data and --batch");
  add_json_flag(app, flags);
}

void add_sweep_flags(CLI::App& app, Flags& flags) {
  add(app, "MODEL", flags.model, "", "a model of the zoo, see below");
  add_program_flags(app, flags);
  add(app, "--budgets", flags.budgets, "A..B",
      "the smallest and the largest budget, as in 6.7MB..24MB (default: from the smallest possible to what plain training "
      "takes)");
  add(app, "--points", flags.points, "N", "how many budgets, both ends included (default: 20)");
  add_data_flag(app, flags, "random images of the model's own shape");
  add(app, "--steps", flags.steps, "N", "timed at each budget, of which the median counts (default: 5)");
  add_device_flag(app, flags);
  add(app, "--seed", flags.seed, "N", "random seed (default: 0)");
  add_json_flag(app, flags);
  add(app, "--html", flags.html, "FILE", "also write a page that draws it, for a browser");
}

void add_eval_flags(CLI::App& app, Flags& flags) {
  add_run_folder(app, flags);
  add(app, "--data", flags.data, "DATA", "other data than the run's own");
  add(app, "--device", flags.device, "DEVICE", "cpu or cuda (default: the run's)");
  add(app, "--threads", flags.threads, "N", "threads that will run it (default: the run's)");
  add_json_flag(app, flags);
}

void add_export_flags(CLI::App& app, Flags& flags) {
  add_run_folder(app, flags);
  add(app, "--to", flags.to, "FILE", "where the weights go, a safetensors file with PyTorch's names");
  add_json_flag(app, flags);
}

void add_report_flags(CLI::App& app, Flags& flags) {
  add(app, "RUN", flags.folder, "", "the folder of a run, as 'snug train --out' made it; it may still be training");
  add(app, "--html", flags.html, "FILE", "where the page goes (default: RUN/report.html)");
  app.add_flag("--json", flags.json,
               "print what the page is drawn from as one JSON object, and write no page unless --html is given");
}

void add_data_flags(CLI::App& app, Flags& flags) {
  add(app, "ACTION", flags.action, "", "get: download it; info: what is in it");
  add(app, "DATA", flags.dataset, "", "embedded, cifar10, or a folder of images");
  add(app, "--image-size", flags.image_size, "N", "info: size that a folder's images are brought to (default: 32)");
  add_json_flag(app, flags);
}

std::int64_t parse_count(std::string_view flag, std::string_view text, std::int64_t least, std::int64_t most) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    throw_user_error("{} {}, not '{}'", flag, describe(settings::CountRange{least, most}), text);
  }
  return value;
}

Bytes parse_size(std::string_view flag, std::string_view text) {
  try {
    return parse_bytes(text);
  } catch (const UserError& error) {
    throw_user_error("{}: {}", flag, error.what());
  }
}

std::vector<std::string> parse_list(std::string_view flag, std::string_view kind, std::string_view text) {
  std::vector<std::string> items;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    if (item.empty()) throw_user_error("{} takes {} with a comma between them, not '{}'", flag, kind, text);
    items.emplace_back(item);
    if (comma == std::string_view::npos) return items;
    rest.remove_prefix(comma + 1);
  }
}

std::optional<std::int64_t> parse_compress(const Flags& flags) {
  if (!flags.compress) return std::nullopt;
  if (*flags.compress != "8" && *flags.compress != "4" && *flags.compress != "2")
    throw_user_error("--compress takes 8, 4 or 2 bits, not '{}'", *flags.compress);
  return flags.compress->front() - '0';
}

std::optional<bool> parse_nesterov(const Flags& flags) {
  if (!flags.nesterov) return std::nullopt;
  if (*flags.nesterov != "yes" && *flags.nesterov != "no") throw_user_error("--nesterov is yes or no, not '{}'", *flags.nesterov);
  return *flags.nesterov == "yes";
}

std::optional<std::int64_t> parse_momentum_bits(const Flags& flags) {
  if (!flags.momentum_bits) return std::nullopt;
  if (*flags.momentum_bits != "8" && *flags.momentum_bits != "32")
    throw_user_error("--momentum-bits takes 8 or 32, not '{}'", *flags.momentum_bits);
  return *flags.momentum_bits == "8" ? 8 : 32;
}

}  // namespace snug::cli
