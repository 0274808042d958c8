#include <algorithm>
#include <optional>
#include <string_view>

#include "api/access.h"
#include "api/costs.h"
#include "api/fitting_threads.h"
#include "api/memory_summary.h"
#include "api/prepare.h"
#include "base/error.h"
#include "io/elements.h"
#include "plan/fit.h"
#include "settings/knobs.h"
#include "train/session.h"
#include "train/snapshot.h"
#include "train/weights.h"
#include <snug/trainer.h>

namespace snug {

namespace {

DType dtype_of(Input::Element element) {
  switch (element) {
    case Input::Element::u8:
      return DType::u8;
    case Input::Element::i32:
      return DType::i32;
    case Input::Element::f32:
      return DType::f32;
  }
  throw InternalError("an input with elements of no type");
}

StepResult to_step_result(const train::Result& result) {
  return {.loss = result.loss, .accuracy = result.mean_score(), .skipped = result.skipped};
}

// The input that is not the labels.
StateId only_other_input(const Program& program, StateId labels) {
  StateId other = StateId::none();
  for (std::size_t s = 0; s < program.states.size(); ++s) {
    if (program.states[s].role != Role::input || StateId(s) == labels) continue;
    if (other.valid())
      throw_user_error("'{}' has several inputs beside its labels; give a step all of them by name", program.name);
    other = StateId(s);
  }
  if (!labels.valid() || !other.valid())
    throw_user_error("'{}' does not have an input and labels; give a step its inputs by name", program.name);
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
                          .device = options.device,
                          .threads = options.threads,
                          .optimizer = {.momentum = options.momentum,
                                        .nesterov = options.nesterov,
                                        .beta1 = options.beta1,
                                        .beta2 = options.beta2,
                                        .epsilon = options.epsilon,
                                        .weight_decay = options.weight_decay,
                                        .decay_norms = options.decay_norms}};
  if (!options.optimizer.empty()) recipe.optimizer.kind = options.optimizer;
  if (options.microbatch > 0) recipe.methods.microbatch = options.microbatch;
  if (options.statistics_group != 0)
    recipe.methods.statistics_group = options.statistics_group;
  else
    recipe.min_microbatch = std::max<std::int64_t>(1, options.min_microbatch);
  if (precision != DType::f32) recipe.methods.precision = precision;
  if (!options.rounding.empty()) recipe.rounding = options.rounding;
  if (!options.checkpoint.empty()) recipe.methods.checkpoint = parse_checkpoint_strategy(options.checkpoint);
  if (options.nonzero != 1) recipe.methods.nonzero = options.nonzero;
  if (options.compress_bits != 0) recipe.methods.compress_bits = options.compress_bits;
  if (options.momentum_bits != 32) recipe.methods.momentum_bits = options.momentum_bits;
  recipe.methods.moment_bits = options.moment_bits;
  if (options.budget_bytes > 0) recipe.budget_bytes = Bytes(options.budget_bytes);
  if (options.clip_norm > 0) recipe.optimizer.clip_norm = options.clip_norm;
  settings::check_recipe(recipe, settings::SaidBy::recipe);
  return recipe;
}

// UserError about what a recipe says of the model or its weights that a trainer is given otherwise.
settings::Recipe for_trainer(settings::Recipe recipe) {
  for (const std::string_view key : {"classes", "image_size", "init", "process_budget"}) {
    if (is_told(settings::knob(key), recipe))
      throw_user_error("{} is for a run; a trainer has its model, its weights and its data from the program", key);
  }
  return recipe;
}

}  // namespace

struct Trainer::Impl {
  // Plans `model` as the recipe says; `checking`: with room to check around every value.
  Impl(const Model& model, const settings::Recipe& recipe, std::uint64_t seed, const std::string& costs, bool checking);

  MemorySummary memory;
  double predicted_step_seconds = 0;
  std::unique_ptr<train::Session> session;

  train::Examples check(std::span<const Input> inputs);
  std::vector<Input> pair(std::span<const std::uint8_t> images, std::span<const std::int32_t> labels) const;

 private:
  std::vector<data::NamedBytes> named_;            // of the step at hand
  std::vector<std::vector<std::byte>> converted_;  // numbers that the model keeps in 16 bits
};

std::vector<Input> Trainer::Impl::pair(std::span<const std::uint8_t> images, std::span<const std::int32_t> labels) const {
  const Program& program = session->plan().program;
  const StateId numbers = session->loss().labels;
  return {{program.state(only_other_input(program, numbers)).name, images}, {program.state(numbers).name, labels}};
}

// The inputs as a session takes them. Valid until the next call.
train::Examples Trainer::Impl::check(std::span<const Input> inputs) {
  const Program& program = session->plan().program;
  named_.clear();
  converted_.assign(inputs.size(), {});
  std::optional<std::size_t> count;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Input& input = inputs[i];
    const auto state = std::ranges::find_if(
        program.states, [&](const State& candidate) { return candidate.role == Role::input && candidate.name == input.name(); });
    if (state == program.states.end()) throw_user_error("the model '{}' has no input '{}'", program.name, input.name());
    const Type& type = state->type;
    const DType given = dtype_of(input.element());
    std::span<const std::byte> bytes = input.bytes();
    if (given == DType::f32 && is_floating(type.dtype) && type.dtype != DType::f32) {
      const std::size_t elements = bytes.size() / sizeof(float);
      converted_[i].resize(elements * static_cast<std::size_t>(bits_per_element(type.dtype)) / 8);
      io::convert_elements(DType::f32, bytes, type.dtype, converted_[i]);
      bytes = converted_[i];
    } else if (given != type.dtype) {
      throw_user_error("input '{}' takes elements of {}, not of {}", input.name(), snug::name_of(type.dtype),
                       snug::name_of(given));
    }
    named_.push_back({.name = input.name(), .bytes = bytes});
    if (!count || StateId(static_cast<std::size_t>(state - program.states.begin())) == session->loss().labels) {
      const auto example_bytes = static_cast<std::size_t>(type.bytes().count() / program.microbatch);
      count = bytes.size() / example_bytes;
    }
  }
  return {.inputs = named_, .count = count.value_or(0)};
}

Trainer::Impl::Impl(const Model& model, const settings::Recipe& recipe, std::uint64_t seed, const std::string& costs_choice,
                    bool checking) {
  const auto program_of = [&](std::int64_t microbatch) {
    Program program =
        Access::of(model).program({.batch = microbatch, .statistics_group = recipe.methods.statistics_group.value_or(0)});
    finish_model(program, recipe);
    return program;
  };
  FitRequest request = request_of(program_of, recipe);
  if (checking) request.options.red_zone = Bytes(128);
  Fit found;
  const auto plan = [&](const Backend& with) {
    request.options.costs = find_costs(costs_choice == "machine" ? std::nullopt : std::optional(costs_choice), with).table();
    found = fit(request, with);
  };
  Backend backend = open_fitting_backend(recipe, plan, [](const std::string& /*said*/) {});
  memory = summarize(found.plan, found.plain_peak_bytes);
  predicted_step_seconds = step_seconds(request.options.costs, found.plan.program);
  session = std::make_unique<train::Session>(std::move(found.plan), std::move(backend), seed);
  session->set_learning_rate(*with_optimizer(recipe, program_of).optimizer.learning_rate);
  configure(*session, recipe);
}

Trainer::Trainer(const Model& model, const TrainingOptions& options)
    : impl_(std::make_unique<Impl>(model, recipe_of(options, Access::of(model).name), options.seed, options.costs,
                                   options.checking)) {
  if (options.learning_rate) set_learning_rate(*options.learning_rate);
}

Trainer::Trainer(const Model& model, const Recipe& recipe, const std::string& costs)
    : impl_(std::make_unique<Impl>(model, for_trainer(Access::of(recipe).whole()), Access::of(recipe).whole().seed, costs,
                                   false)) {}

Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;

const MemorySummary& Trainer::memory() const { return impl_->memory; }

double Trainer::predicted_step_seconds() const { return impl_->predicted_step_seconds; }

void Trainer::start_measuring() { impl_->session->executor().start_measuring(); }

std::int64_t Trainer::measured_peak_bytes() const { return impl_->session->executor().measured_peak_bytes().count(); }

StepResult Trainer::train(std::span<const Input> inputs) {
  return to_step_result(impl_->session->train_step(impl_->check(inputs)));
}

StepResult Trainer::train(std::span<const std::uint8_t> images, std::span<const std::int32_t> labels) {
  return train(impl_->pair(images, labels));
}

StepResult Trainer::evaluate(std::span<const Input> inputs) {
  return to_step_result(impl_->session->evaluate(impl_->check(inputs)));
}

StepResult Trainer::evaluate(std::span<const std::uint8_t> images, std::span<const std::int32_t> labels) {
  return evaluate(impl_->pair(images, labels));
}

void Trainer::set_learning_rate(double learning_rate) { impl_->session->set_learning_rate(learning_rate); }

std::uint64_t Trainer::steps() const { return impl_->session->step(); }

void Trainer::rewire() {
  if (impl_->session->plan().program.find_section(SectionKind::periodic) == nullptr)
    throw_user_error("'{}' has no sparse weights whose pattern could move", impl_->session->plan().program.name);
  impl_->session->run_periodic();
}

void Trainer::save_snapshot(const std::string& path) const { train::save_snapshot(path, *impl_->session, {}); }

void Trainer::load_snapshot(const std::string& path) { train::load_snapshot(path, *impl_->session); }

void Trainer::export_weights(const std::string& path) const { train::export_weights(path, *impl_->session); }

std::string Trainer::import_weights(const std::string& path) { return train::import_weights(path, *impl_->session); }

std::vector<std::string> Trainer::parameter_names() const {
  std::vector<std::string> names;
  for (const State& state : impl_->session->plan().program.states) {
    if (state.role == Role::parameter) names.push_back(state.name);
  }
  return names;
}

std::vector<float> Trainer::parameter(const std::string& name) const { return impl_->session->read_floats(name); }

void Trainer::set_parameter(const std::string& name, std::span<const float> values) {
  impl_->session->write_floats(name, values);
}

}  // namespace snug
