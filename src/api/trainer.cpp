#include <algorithm>
#include <array>
#include <string_view>

#include "api/costs.h"
#include "api/model_impl.h"
#include "api/prepare.h"
#include "base/error.h"
#include "plan/fit.h"
#include "train/session.h"
#include <snug/trainer.h>

namespace snug {

struct Trainer::Impl {
  train::Session session;
  MemorySummary memory;
  double predicted_step_seconds;
  std::string_view input, labels;  // what the program calls them

  std::array<data::NamedBytes, 2> inputs(std::span<const std::uint8_t> images, std::span<const std::int32_t> numbers) const {
    return {data::NamedBytes{.name = input, .bytes = std::as_bytes(images)}, {.name = labels, .bytes = std::as_bytes(numbers)}};
  }
  // A label for every row of the loss.
  std::size_t examples(std::span<const std::int32_t> numbers) const {
    return numbers.size() / static_cast<std::size_t>(session.loss().rows_per_example);
  }
};

namespace {

MemorySummary summarize(const Fit& found) {
  const Plan& plan = found.plan;
  const PeakMoment peak = peak_moment(plan);
  const auto bytes = [&](MemoryClass c) { return peak.by_class[static_cast<std::size_t>(c)].count(); };
  return {.planned_peak_bytes = plan.planned_peak_bytes.count(),
          .bound_bytes = plan.bound_bytes.count(),
          .plain_peak_bytes = found.plain_peak_bytes.value_or(Bytes(0)).count(),
          .microbatch = plan.program.microbatch,
          .compress_bits = static_cast<int>(plan.methods.compress_bits.value_or(0)),
          .checkpoint = to_string(*plan.methods.checkpoint),
          .precision = std::string(precision_name(*plan.methods.precision)),
          .by_class = {.model = bytes(MemoryClass::model),
                       .gradient = bytes(MemoryClass::gradient),
                       .optimizer = bytes(MemoryClass::optimizer),
                       .activation = bytes(MemoryClass::activation),
                       .workspace = bytes(MemoryClass::workspace),
                       .input = bytes(MemoryClass::input)}};
}

StepResult to_step_result(const train::Result& result) { return {.loss = result.loss, .accuracy = result.mean_score()}; }

// The input that is not the labels.
StateId only_other_input(const Program& program, StateId labels) {
  StateId other = StateId::none();
  for (std::size_t s = 0; s < program.states.size(); ++s) {
    if (program.states[s].role != Role::input || StateId(s) == labels) continue;
    if (other.valid())
      throw_user_error("'{}' has several inputs beside its labels, which a Trainer does not feed so far", program.name);
    other = StateId(s);
  }
  if (!labels.valid() || !other.valid())
    throw_user_error("a Trainer feeds an input and labels, which '{}' does not have", program.name);
  return other;
}

std::vector<std::string> split_at_commas(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t comma = 0; comma != std::string_view::npos;) {
    comma = text.find(',');
    words.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(text.size(), words.back().size() + 1));
  }
  return words;
}

// The options as a recipe; what they leave at 0 or empty is not told. A precision of fp32 leaves the choice that `allow` gives.
settings::Recipe recipe_of(const TrainingOptions& options, const std::string& model) {
  if (options.batch < 1 || options.microbatch < 0 || options.microbatch > options.batch) {
    throw_user_error("a microbatch of {} out of a batch of {} is not possible", options.microbatch, options.batch);
  }
  if (options.budget_bytes < 0) throw_user_error("a budget of {} bytes is not possible", options.budget_bytes);
  if (const int bits = options.compress_bits; bits != 0 && bits != 2 && bits != 4 && bits != 8)
    throw_user_error("activations cannot be kept in {} bits; use 8, 4 or 2, or 0 for as they are", bits);
  if (options.threads < 0) throw_user_error("{} threads are not possible; use 1 or more, or 0 for all cores", options.threads);
  const auto precision = parse_precision(options.precision);
  if (!precision) throw_user_error("precision '{}' is not possible; use fp32, bf16 or fp16", options.precision);
  settings::Recipe recipe{.model = model,
                          .batch = options.batch,
                          .allow = split_at_commas(options.allow),
                          .threads = options.threads,
                          .seed = options.seed,
                          .optimizer = {.learning_rate = options.learning_rate,
                                        .momentum = options.momentum,
                                        .nesterov = options.nesterov,
                                        .weight_decay = options.weight_decay}};
  if (options.microbatch > 0) recipe.methods.microbatch = options.microbatch;
  if (options.statistics_group != 0)
    recipe.statistics_group = options.statistics_group;
  else
    recipe.min_microbatch = options.min_microbatch;
  if (precision != DType::f32) recipe.methods.precision = precision;
  if (!options.rounding.empty()) recipe.rounding = options.rounding;
  if (!options.checkpoint.empty()) recipe.methods.checkpoint = parse_checkpoint_strategy(options.checkpoint);
  if (options.compress_bits != 0) recipe.methods.compress_bits = options.compress_bits;
  if (options.momentum_bits != 32) recipe.methods.momentum_bits = options.momentum_bits;
  if (options.budget_bytes > 0) recipe.budget_bytes = Bytes(options.budget_bytes);
  if (options.clip_norm > 0) recipe.optimizer.clip_norm = options.clip_norm;
  settings::check_recipe(recipe, settings::SaidBy::recipe);
  return recipe;
}

}  // namespace

Trainer::Trainer(const Model& model, const TrainingOptions& options) {
  const settings::Recipe recipe = recipe_of(options, model.impl().name);
  if (parse_allowance(recipe.allow).has(Exactness::sparse)) {
    throw UserError(
        "allow 'sparse' asks for weights whose pattern moves between steps, which a Trainer does not do so far; leave it out, or "
        "use 'snug train'");
  }
  Backend backend = open_backend(recipe);
  const Costs costs = find_costs(options.costs == "machine" ? std::nullopt : std::optional(options.costs), backend);
  const auto program_of = [&](std::int64_t microbatch) {
    return model.impl().program({.batch = microbatch, .statistics_group = options.statistics_group});
  };
  FitRequest request = request_of(program_of, recipe, costs.table());
  if (options.checking) request.options.red_zone = Bytes(128);
  Fit found = fit(request, backend);
  const MemorySummary memory = summarize(found);
  const double predicted = step_seconds(request.options.costs, found.plan.program);
  impl_ = std::make_unique<Impl>(Impl{.session = train::Session(std::move(found.plan), std::move(backend), options.seed),
                                      .memory = memory,
                                      .predicted_step_seconds = predicted,
                                      .input = {},
                                      .labels = {}});
  const Program& program = impl_->session.plan().program;
  const StateId labels = impl_->session.loss().labels;
  impl_->input = program.state(only_other_input(program, labels)).name;
  impl_->labels = program.state(labels).name;
  impl_->session.set_learning_rate(options.learning_rate);
  configure(impl_->session, recipe);
}

Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;

const MemorySummary& Trainer::memory() const { return impl_->memory; }

double Trainer::predicted_step_seconds() const { return impl_->predicted_step_seconds; }

void Trainer::start_measuring() { impl_->session.executor().start_measuring(); }

std::int64_t Trainer::measured_peak_bytes() const { return impl_->session.executor().measured_peak_bytes().count(); }

StepResult Trainer::train(std::span<const std::uint8_t> images, std::span<const std::int32_t> labels) {
  const std::array inputs = impl_->inputs(images, labels);
  return to_step_result(impl_->session.train_step({.inputs = inputs, .count = impl_->examples(labels)}));
}

StepResult Trainer::evaluate(std::span<const std::uint8_t> images, std::span<const std::int32_t> labels) {
  const std::array inputs = impl_->inputs(images, labels);
  return to_step_result(impl_->session.evaluate({.inputs = inputs, .count = impl_->examples(labels)}));
}

void Trainer::set_learning_rate(double learning_rate) { impl_->session.set_learning_rate(learning_rate); }

std::vector<std::string> Trainer::parameter_names() const {
  std::vector<std::string> names;
  for (const State& state : impl_->session.plan().program.states) {
    if (state.role == Role::parameter) names.push_back(state.name);
  }
  return names;
}

std::vector<float> Trainer::parameter(const std::string& name) const {
  const std::vector<double> values = impl_->session.read_state(name);
  return {values.begin(), values.end()};
}

void Trainer::set_parameter(const std::string& name, std::span<const float> values) {
  impl_->session.write_state(name, std::vector<double>(values.begin(), values.end()));
}

}  // namespace snug
