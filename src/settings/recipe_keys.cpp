#include "settings/recipe_keys.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"
#include "data/images/image_folder.h"

namespace snug::settings {

namespace {

constexpr CountRange kExamples{1, 1'000'000'000};
constexpr CountRange kSteps{1, 1'000'000'000'000};

const std::array<RecipeKey, 47> kKeys{{
    {"model", "MODEL"},
    // One class is nothing to learn. Kernels count outputs in 32 bits, and far fewer fit any machine.
    {"classes", "--classes", CountRange{2, 10'000'000}},
    {"image_size", "--image-size", CountRange{1, data::kMostImageSize}},
    {"data", "--data"},
    {"augment", "--augment"},
    {"batch", "--batch", kExamples},
    {"microbatch", "--microbatch", kExamples},
    {"min_microbatch", "--min-microbatch", kExamples},
    {"statistics_group", "--statistics-group", kExamples},
    {"precision", "--precision"},
    {"rounding", "--rounding"},
    {"loss_scale_growth", "", kSteps},
    {"checkpoint", "--checkpoint"},
    {"compress", "--compress"},
    {"budget", "--budget"},
    {"workspace_limit", "--workspace-limit"},
    {"allow", "--allow"},
    {"device", "--device"},
    {"threads", "--threads", CountRange{1, 1024}},
    {"seed", "--seed", CountRange{0, std::numeric_limits<std::int64_t>::max()}},
    {"epochs", "--epochs", CountRange{1, 1'000'000'000}},
    {"steps", "--steps", kSteps},
    {"eval_every", "--eval-every", kSteps},
    {"snapshot_every", "--snapshot-every", kSteps},
    {"keep", "--keep", CountRange{1, 1'000'000}},
    {"freeze", "--freeze"},
    {"init", "--init"},
    {"init_prefix", "--init-prefix"},
    {"init_partial", "--init-partial"},
    {"optimizer.learning_rate", "--learning-rate", NumberRange{0, 1e6, false}},
    {"optimizer.momentum", "--momentum", NumberRange{0, 1}},
    {"optimizer.nesterov", "--nesterov"},
    {"optimizer.weight_decay", "--weight-decay", NumberRange{0, 1e6}},
    {"optimizer.clip_norm", "--clip-norm", NumberRange{0, 1e30, false}},
    {"optimizer.momentum_bits", "--momentum-bits"},
    {"optimizer.drop_gradients", "--drop-gradients"},
    {"schedule.kind", "--schedule"},
    {"schedule.warmup_steps", "--warmup-steps", CountRange{0, kSteps.most}},
    {"schedule.milestones", "--milestones", NumberRange{0, 1e9, false}},
    {"schedule.gamma", "--gamma", NumberRange{0, 1, false}},
    {"schedule.final", "", NumberRange{0, 1}},
    {"sparse.nonzero", "--nonzero", NumberRange{0.0001, 1}},
    {"sparse.method", ""},
    {"sparse.rewire_every", ""},
    {"sparse.rewire_milestones", "", NumberRange{0, 1e9, false}},
    {"sparse.rewire_fraction", "", NumberRange{0, 1}},
    {"sparse.threshold", "", NumberRange{0, 1e6}},
}};

}  // namespace

std::string describe(const CountRange& range) {
  return fmt::format("takes a whole number from {} to {}", range.least, range.most);
}

std::string describe(const NumberRange& range) {
  if (range.least_included) return fmt::format("takes a number from {} to {}", range.least, range.most);
  return fmt::format("takes a number above {}, up to {}", range.least, range.most);
}

const RecipeKey& recipe_key(std::string_view name) {
  const auto* const found = std::ranges::find(kKeys, name, &RecipeKey::name);
  SNUG_CHECK(found != kKeys.end(), "a recipe has no key '{}'", name);
  return *found;
}

const CountRange& count_range(std::string_view name) {
  const auto* range = std::get_if<CountRange>(&recipe_key(name).range);
  SNUG_CHECK(range != nullptr, "'{}' is not counted", name);
  return *range;
}

const NumberRange& number_range(std::string_view name) {
  const auto* range = std::get_if<NumberRange>(&recipe_key(name).range);
  SNUG_CHECK(range != nullptr, "'{}' is not a number", name);
  return *range;
}

}  // namespace snug::settings
