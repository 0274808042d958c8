#include "settings/knobs.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"
#include "data/dataset.h"
#include "data/images/image_folder.h"
#include "plan/allowance.h"
#include "settings/optimizer_knobs.h"
#include "settings/schedule_and_sparse_knobs.h"

namespace snug::settings {

namespace {

constexpr CountRange kExamples{1, 1'000'000'000};
constexpr std::array<std::string_view, 3> kPrecisions{"fp32", "fp16", "bf16"};
constexpr std::array<std::string_view, 2> kRoundings{"nearest", "stochastic"};
constexpr std::array<std::string_view, 3> kCompressBits{"8", "4", "2"};
constexpr std::array<std::string_view, 2> kDevices{"cpu", "cuda"};

constexpr Offered kPlans = Offered::plan | Offered::profile | Offered::train;  // a sweep says its budgets itself

// The recipe's own keys.
const std::array kOwn{
    Knob{.key = "model",
         .flag = "MODEL",
         .slot = [](Recipe& r) -> Slot { return &r.model; },
         .argument = "",
         .help = "a model of those below, or a file with a run's settings (recipe.toml)",
         .otherwise = "",
         .offered = kAlsoPaper},
    // One class is nothing to learn. Kernels count outputs in 32 bits, and far fewer fit any machine.
    Knob{.key = "classes",
         .flag = "--classes",
         .slot = [](Recipe& r) -> Slot { return &r.classes; },
         .argument = "N",
         .values = CountRange{2, 10'000'000},
         .help = "number of classes, the outputs of the last layer",
         .otherwise = "the data's, else the model's own",
         .offered = kAlsoPaper,
         .reads = data::Kind::images},
    Knob{.key = "image_size",
         .flag = "--image-size",
         .slot = [](Recipe& r) -> Slot { return &r.image_size; },
         .argument = "N",
         .values = CountRange{1, data::kMostImageSize},
         .help = "height and width of the images that the model is given",
         .otherwise = "the data's, else the model's own",
         .offered = kAlsoPaper,
         .reads = data::Kind::images},
    // The record of a run's data says whether it is the same one, wherever it is now.
    Knob{.key = "tokenizer",
         .flag = "--tokenizer",
         .slot = [](Recipe& r) -> Slot { return &r.tokenizer; },
         .argument = "TOKENIZER",
         .help = "how a text becomes tokens: bytes, or the path of a byte-level BPE such as GPT-2's: tokenizer.json, vocab.json "
                 "with merges.txt beside it, or a folder that has one of these",
         .otherwise = "bytes",
         .may_change = true,
         .reads = data::Kind::text},
    Knob{.key = "length",
         .flag = "--length",
         .slot = [](Recipe& r) -> Slot { return &r.length; },
         .argument = "N",
         .values = CountRange{1, data::kMostLength},
         .help = "sequence length of a language model: tokens in an example",
         .otherwise = "the model's context",
         .reads = data::Kind::text},
    Knob{.key = "vocabulary",
         .flag = "--vocabulary",
         .slot = [](Recipe& r) -> Slot { return &r.vocabulary; },
         .argument = "N",
         .values = CountRange{2, 10'000'000},
         .help = "vocabulary size of a language model, at least that of its tokenizer",
         .otherwise = "the model's own, else the tokenizer's",
         .reads = data::Kind::text},
    Knob{.key = "data",
         .flag = "--data",
         .slot = [](Recipe& r) -> Slot { return &r.data; },
         .argument = "DATA",
         .suggested = data::kNamedSets,
         .help = "embedded (1,797 handwritten digits inside the program), cifar10 (get it with 'snug data get "
                 "cifar10'), or a folder of images: FOLDER/train/CLASS/*.png; for language models embedded (a book), a text file "
                 "or a folder of .txt files",
         .otherwise = "embedded to train, else random examples of the model's own size",
         .may_change = true},
    // The record of a run's data says whether it is the same with and without them.
    Knob{.key = "skip_bad_images",
         .flag = "--skip-bad-images",
         .slot = [](Recipe& r) -> Slot { return &r.skip_bad_images; },
         .argument = "",
         .help = "leave out images that cannot be read, after decoding each once; 'snug data check FOLDER' lists them",
         .otherwise = "",
         .may_change = true,
         .reads = data::Kind::images,
         .is_quiet = true},
    Knob{.key = "augment",
         .flag = "--augment",
         .slot = [](Recipe& r) -> Slot { return &r.augment; },
         .argument = "YES|NO",
         .help = "data augmentation: images are mirrored and shifted at random",
         .otherwise = "yes, but not for the embedded digits",
         .offered = Offered::train,
         .reads = data::Kind::images},
    Knob{.key = "label_smoothing",
         .flag = "--label-smoothing",
         .slot = [](Recipe& r) -> Slot { return &r.label_smoothing; },
         .argument = "SHARE",
         .values = NumberRange{0, 0.999},
         .help = "share of each label that is spread evenly over all classes, in training and in tests",
         .otherwise = "",
         .offered = Offered::train,
         .is_quiet = true},
    Knob{.key = "batch",
         .flag = "--batch",
         .slot = [](Recipe& r) -> Slot { return &r.batch; },
         .argument = "N",
         .values = kExamples,
         .help = "batch size: examples per optimizer step",
         .otherwise = "",
         .offered = kAlsoPaper},
    Knob{.key = "microbatch",
         .flag = "--microbatch",
         .slot = [](Recipe& r) -> Slot { return &r.methods.microbatch; },
         .argument = "N",
         .values = kExamples,
         .help = "gradient accumulation: the batch goes through in parts of N examples, whose gradients are added up",
         .otherwise = "the whole batch; --budget may choose less",
         .topic = Topic::memory,
         .offered = kAlsoPaper,
         .exactness = Exactness::microbatch,
         .is_chosen = true,
         .plan_says = PlanSays::how},
    Knob{.key = "min_microbatch",
         .flag = "--min-microbatch",
         .slot = [](Recipe& r) -> Slot { return &r.min_microbatch; },
         .argument = "N",
         .values = kExamples,
         .help = "smallest part of the batch that --budget may choose for a model with batch norm",
         .otherwise = "10",
         .topic = Topic::memory,
         .exactness = Exactness::microbatch,
         .plan_says = PlanSays::how},
    Knob{.key = "statistics_group",
         .flag = "--statistics-group",
         .slot = [](Recipe& r) -> Slot { return &r.methods.statistics_group; },
         .argument = "N",
         .values = kExamples,
         .help = "batch norm takes mean and variance over N examples at a time (ghost batch norm), however many are "
                 "in memory",
         .otherwise = "over all that are in memory",
         .topic = Topic::memory,
         .exactness = Exactness::microbatch,
         .plan_says = PlanSays::form},
    Knob{.key = "precision",
         .flag = "--precision",
         .slot = [](Recipe& r) -> Slot { return &r.methods.precision; },
         .argument = "TYPE",
         .values = Choices(kPrecisions),
         .help = "low precision: weights, gradients, optimizer state and activations in fp32, bf16 or fp16, without a "
                 "copy of the weights in fp32",
         .otherwise = "fp32",
         .topic = Topic::memory,
         .offered = kAlsoPaper,
         .exactness = Exactness::precision,
         .is_chosen = true,
         .plan_says = PlanSays::form},
    Knob{.key = "rounding",
         .flag = "--rounding",
         .slot = [](Recipe& r) -> Slot { return &r.rounding; },
         .argument = "HOW",
         .values = Choices(kRoundings),
         .help = "how 16-bit weights and optimizer state are rounded after an update: nearest, or stochastic (up or down "
                 "at random, so that small updates are not lost)",
         .otherwise = "nearest in fp16, else stochastic",
         .topic = Topic::memory,
         .offered = Offered::program},
    Knob{.key = "loss_scale_growth",
         .flag = "",
         .slot = [](Recipe& r) -> Slot { return &r.loss_scale_growth; },
         .argument = "STEPS",
         .values = kSteps,
         .help = "steps without overflow after which fp16's loss scale doubles",
         .otherwise = "2000",
         .topic = Topic::memory,
         .offered = Offered::nowhere},
    Knob{.key = "checkpoint",
         .flag = "--checkpoint",
         .slot = [](Recipe& r) -> Slot { return &r.methods.checkpoint; },
         .argument = "STRATEGY",
         .suggested = checkpoint_names(),
         .help = "gradient checkpointing: which activations stay in memory; backward recomputes the others. none: all "
                 "stay; no-bn: all but those of norms and activation functions; sqrt, log, chen: those between segments of the "
                 "model; every-M: "
                 "of every M-th layer; residual-M, residual-M*: of every M-th residual block; optimal:BYTES: the "
                 "fastest choice with that much memory beside weights and optimizer state; greedy:BYTES: a good one, "
                 "for models that are not a chain of layers",
         .otherwise = "none; --budget may choose",
         .topic = Topic::memory,
         .offered = kAlsoPaper,
         .exactness = Exactness::exact,
         .is_chosen = true,
         .plan_says = PlanSays::how},
    Knob{.key = "compress",
         .flag = "--compress",
         .slot = [](Recipe& r) -> Slot { return &r.methods.compress_bits; },
         .argument = "BITS",
         .values = Choices(kCompressBits),
         .help = "activation compression: 8, 4 or 2 bits per element from forward to backward, rounded at random; on "
                 "the CPU only",
         .otherwise = "not compressed; --budget may choose 4 with --allow compressed",
         .topic = Topic::memory,
         .exactness = Exactness::compressed,
         .is_chosen = true,
         .plan_says = PlanSays::how,
         .cpu_alone = true},
    Knob{.key = "fuse_update",
         .flag = "--fuse-update",
         .slot = [](Recipe& r) -> Slot { return &r.methods.fuse_update; },
         .argument = "YES|NO",
         .help = "update each weight during backward, as soon as its gradient is complete, so that gradients are not "
                 "all in memory at once",
         .otherwise = "no; --budget may choose",
         .topic = Topic::memory,
         .exactness = Exactness::exact,
         .is_chosen = true,
         .plan_says = PlanSays::how},
    Knob{.key = "prepack_weights",
         .flag = "--prepack-weights",
         .slot = [](Recipe& r) -> Slot { return &r.methods.prepack_weights; },
         .argument = "YES|NO",
         .help = "keep weights a second time in the layout that kernels read, instead of copying them every time: "
                 "faster, more memory",
         .otherwise = "no",
         .topic = Topic::memory,
         .exactness = Exactness::exact,
         .plan_says = PlanSays::how},
    Knob{.key = "offload",
         .flag = "--offload",
         .slot = [](Recipe& r) -> Slot { return &r.methods.offload; },
         .argument = "YES|NO",
         .help = "CPU offload: activations are moved to host memory until backward, without overlap of copies and "
                 "computing so far",
         .otherwise = "no",
         .topic = Topic::memory,
         .exactness = Exactness::exact,
         .plan_says = PlanSays::how},
    Knob{.key = "budget",
         .flag = "--budget",
         .slot = [](Recipe& r) -> Slot { return &r.budget_bytes; },
         .argument = "BYTES",
         .help = "memory limit, such as 24MB or 6.4MiB, for weights, gradients, optimizer state, activations and "
                 "kernels' scratch; the fastest way to train that fits is taken",
         .otherwise = "no limit: the whole batch at once, nothing recomputed",
         .topic = Topic::memory,
         .offered = kPlans},
    Knob{.key = "process_budget",
         .flag = "--process-budget",
         .slot = [](Recipe& r) -> Slot { return &r.process_budget; },
         .argument = "BYTES",
         .help =
             "memory for the whole process as the operating system counts it, on a GPU for the device as its driver counts it: "
             "what training takes beside --budget's memory is measured first, which takes a few steps",
         .otherwise = "no limit",
         .topic = Topic::memory,
         .offered = Offered::train},
    Knob{.key = "workspace_limit",
         .flag = "--workspace-limit",
         .slot = [](Recipe& r) -> Slot { return &r.methods.workspace_limit; },
         .argument = "BYTES",
         .help = "largest scratch (workspace) of a kernel, such as 16MB",
         .otherwise = "no limit; --budget may choose",
         .topic = Topic::memory,
         .exactness = Exactness::reassociated,
         .is_chosen = true,
         .plan_says = PlanSays::how},
    Knob{.key = "allow",
         .flag = "--allow",
         .slot = [](Recipe& r) -> Slot { return &r.allow; },
         .argument = "LIST",
         .suggested = rung_names(),
         .help = "what --budget may change in the results, separated by commas: exact (nothing: the same bits), "
                 "reassociated (sums in another order), microbatch (batch norm over parts of the batch), precision "
                 "(numbers in 16 bits), compressed (activations in 4 bits), sparse (only part of the weights, where "
                 "nothing else fits)",
         .otherwise = "exact,reassociated,microbatch",
         .topic = Topic::memory,
         .plan_says = PlanSays::how},
    Knob{.key = "device",
         .flag = "--device",
         .slot = [](Recipe& r) -> Slot { return &r.device; },
         .argument = "DEVICE",
         .values = Choices(kDevices),
         .help = "cpu, or cuda for a GPU",
         .otherwise = ""},
    Knob{.key = "threads",
         .flag = "--threads",
         .slot = [](Recipe& r) -> Slot { return &r.threads; },
         .argument = "N",
         .values = CountRange{1, 1024},
         .help = "number of CPU threads",
         .otherwise = "all cores; fewer where --budget has no room for their scratch"},
    Knob{.key = "seed",
         .flag = "--seed",
         .slot = [](Recipe& r) -> Slot { return &r.seed; },
         .argument = "N",
         .values = CountRange{0, std::numeric_limits<std::int64_t>::max()},
         .help = "random seed",
         .otherwise = "",
         .topic = Topic::length,
         .offered = Offered::train | Offered::sweep},
    Knob{.key = "epochs",
         .flag = "--epochs",
         .slot = [](Recipe& r) -> Slot { return &r.epochs; },
         .argument = "N",
         .values = CountRange{1, 1'000'000'000},
         .help = "passes over the training data",
         .otherwise = "1",
         .topic = Topic::length,
         .offered = Offered::train,
         .may_change = true},
    Knob{.key = "steps",
         .flag = "--steps",
         .slot = [](Recipe& r) -> Slot { return &r.steps; },
         .argument = "N",
         .values = kSteps,
         .help = "optimizer steps, instead of --epochs",
         .otherwise = "",
         .topic = Topic::length,
         .offered = Offered::train,
         .may_change = true},
    Knob{.key = "eval_every",
         .flag = "--eval-every",
         .slot = [](Recipe& r) -> Slot { return &r.eval_every; },
         .argument = "STEPS",
         .values = kSteps,
         .help = "evaluate on the test data every so many steps",
         .otherwise = "after every epoch",
         .topic = Topic::length,
         .offered = Offered::train,
         .may_change = true},
    Knob{.key = "snapshot_every",
         .flag = "--snapshot-every",
         .slot = [](Recipe& r) -> Slot { return &r.snapshot_every; },
         .argument = "STEPS",
         .values = kSteps,
         .help = "save weights and optimizer state every so many steps, to resume from",
         .otherwise = "after every epoch",
         .topic = Topic::length,
         .offered = Offered::train,
         .may_change = true},
    Knob{.key = "keep",
         .flag = "--keep",
         .slot = [](Recipe& r) -> Slot { return &r.keep; },
         .argument = "N",
         .values = CountRange{1, 1'000'000},
         .help = "how many of the newest snapshots are kept, beside the best",
         .otherwise = "",
         .topic = Topic::length,
         .offered = Offered::train,
         .may_change = true},
    Knob{.key = "freeze",
         .flag = "--freeze",
         .slot = [](Recipe& r) -> Slot { return &r.freeze; },
         .argument = "PREFIX",
         .help = "freeze the parameters whose names begin with PREFIX: no gradients, no updates; may be repeated",
         .otherwise = "",
         .topic = Topic::weights,
         .offered = kAlsoPaper,
         .repeats = true},
    Knob{.key = "init",
         .flag = "--init",
         .slot = [](Recipe& r) -> Slot { return &r.init; },
         .argument = "FILE",
         .help = "pretrained weights to start from: a safetensors file, the index.json of a sharded one, or a folder "
                 "with either; a last layer for another number of classes starts at random",
         .otherwise = "",
         .topic = Topic::weights,
         .offered = Offered::train},
    Knob{.key = "init_prefix",
         .flag = "--init-prefix",
         .slot = [](Recipe& r) -> Slot { return &r.init_prefix; },
         .argument = "PREFIX",
         .help = "what the names in --init begin with and the model's do not, as in model.",
         .otherwise = "",
         .topic = Topic::weights,
         .offered = Offered::train},
    Knob{.key = "init_partial",
         .flag = "--init-partial",
         .slot = [](Recipe& r) -> Slot { return &r.init_partial; },
         .argument = "",
         .help = "ignore names in --init that the model lacks, and start what is missing there at random (as with "
                 "strict=False)",
         .otherwise = "",
         .topic = Topic::weights,
         .offered = Offered::train,
         .is_quiet = true},
    Knob{.key = "init_strict",
         .flag = "--init-strict",
         .slot = [](Recipe& r) -> Slot { return &r.init_strict; },
         .argument = "",
         .help = "refuse --init weights whose last layer has another number of classes, instead of drawing that layer at random",
         .otherwise = "",
         .topic = Topic::weights,
         .offered = Offered::train,
         .is_quiet = true},
};

}  // namespace

std::string_view heading_of(Topic topic) {
  switch (topic) {
    case Topic::model:
      return "model and data";
    case Topic::memory:
      return "memory";
    case Topic::optimizer:
      return "optimizer";
    case Topic::schedule:
      return "learning-rate schedule";
    case Topic::length:
      return "length, evaluation and snapshots";
    case Topic::weights:
      return "weights";
  }
  throw InternalError("a topic without a heading");
}

// In the order in which a recipe is printed. Help lists a topic's knobs in this order, too.
std::span<const Knob> knobs() {
  static const std::vector<Knob> all = [] {
    std::vector<Knob> rows(kOwn.begin(), kOwn.end());
    for (const std::span<const Knob> table : {optimizer_knobs(), schedule_and_sparse_knobs()})
      rows.insert(rows.end(), table.begin(), table.end());
    return rows;
  }();
  return all;
}

bool has_knob(std::string_view key) { return std::ranges::find(knobs(), key, &Knob::key) != knobs().end(); }

std::string_view name_of(const Knob& knob, SaidBy said_by) {
  return said_by == SaidBy::flags && !knob.flag.empty() ? knob.flag : knob.key;
}

const Knob& knob(std::string_view key) {
  const std::span<const Knob> all = knobs();
  const auto found = std::ranges::find(all, key, &Knob::key);
  SNUG_CHECK(found != all.end(), "a recipe has no key '{}'", key);
  return *found;
}

KeyParts parts_of(const Knob& knob) {
  const std::size_t dot = knob.key.find('.');
  if (dot == std::string_view::npos) return {.table = {}, .name = std::string(knob.key)};
  return {.table = std::string(knob.key.substr(0, dot)), .name = std::string(knob.key.substr(dot + 1))};
}

}  // namespace snug::settings
