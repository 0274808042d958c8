#include "api/prepare.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "backends/cpu/cpu.h"
#include "backends/cuda_plugin.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/threads.h"
#include "data/text/text_dataset.h"
#include "frontend/graph_builder.h"
#include "frontend/zoo.h"
#include "io/plan_file.h"
#include "ir/op.h"
#include "settings/knobs.h"
#include "settings/optimizer.h"
#include "settings/told.h"

namespace snug {

namespace {

// Of the images that a model takes; image_size 0: its own.
Shape own_shape(const std::string& model, std::int64_t image_size) {
  const Program program = frontend::build_zoo_model(model, {.batch = 1, .image_size = image_size});
  const Section* forward = program.find_section(SectionKind::forward);
  SNUG_CHECK(forward != nullptr, "a model without a forward pass");
  // What is normalized as data is comes in as images.
  const auto normalizes = [](const Node& node) { return node.op->prepares_data; };
  const auto node = std::ranges::find_if(forward->nodes, normalizes);
  if (node == forward->nodes.end()) throw_user_error("'{}' does not take images", model);
  return forward->value(node->inputs.front()).type.shape;
}

// Which data "embedded" is, by the model.
std::string data_of(const settings::Recipe& recipe) {
  return recipe.data == "embedded" && frontend::language_model_size(recipe.model) ? "embedded-text" : recipe.data;
}

// How many tokens a language model knows: what the recipe says, the model's own number, or that of its data.
std::int64_t vocabulary_of(const settings::Recipe& recipe, const frontend::LanguageModelSize& model, std::int64_t of_data) {
  const std::int64_t vocabulary = recipe.vocabulary                          ? *recipe.vocabulary
                                  : model.has_own_vocabulary || of_data == 0 ? model.vocabulary
                                                                             : of_data;
  if (vocabulary < of_data) {
    throw_user_error("the tokenizer has {} tokens and the model knows {}; give --vocabulary {}, or another --tokenizer", of_data,
                     vocabulary, of_data);
  }
  return vocabulary;
}

void check_language_data(const settings::Recipe& recipe, const data::Description& data) {
  if (data.kind == data::Kind::text) return;
  throw_user_error("'{}' reads text, and '{}' has images; give a text file, a folder of .txt files or embedded", recipe.model,
                   data.name);
}

[[noreturn]] void refuse_without_text(const settings::Recipe& recipe, const std::string& spec) {
  throw_user_error("'{}' reads text, and '{}' has images or no .txt file; give a text file, a folder of .txt files or embedded",
                   recipe.model, spec);
}

FitRequest language_request(const settings::Recipe& recipe, const frontend::LanguageModelSize& size,
                            const data::Description& data, CostTable costs) {
  check_language_data(recipe, data);
  const std::int64_t vocabulary = vocabulary_of(recipe, size, data.text.vocabulary);
  const auto build = [recipe, vocabulary, length = data.text.length](std::int64_t microbatch) {
    Program model = frontend::build_zoo_model(recipe.model, {.batch = microbatch, .vocabulary = vocabulary, .length = length});
    finish_model(model, recipe);
    return model;
  };
  return request_of(build, recipe, std::move(costs));
}

// The digits of the embedded set are no longer themselves when mirrored; photographs are.
bool augments(const settings::Recipe& recipe) { return recipe.augment.value_or(recipe.data != "embedded"); }

}  // namespace

std::unique_ptr<data::Dataset> open_data(const settings::Recipe& recipe) {
  if (const auto size = frontend::language_model_size(recipe.model)) {
    const data::TextOptions options{.tokenizer = recipe.tokenizer.value_or("bytes"),
                                    .length = recipe.length.value_or(size->context)};
    const std::string spec = data_of(recipe);
    if (!data::is_text_data(spec)) {
      // With other reasons why there is no text, such as a path that leads nowhere, as open_text() says them.
      std::error_code error;
      if (spec == "cifar10" || std::filesystem::is_directory(spec, error)) refuse_without_text(recipe, spec);
      return data::open_dataset(spec, {});
    }
    return data::open_text(spec, options);
  }
  return data::open_dataset(recipe.data,
                            {.image_size = recipe.image_size.value_or(0),
                             .default_image_size = own_shape(recipe.model, 0)[2],
                             .bad_images = recipe.skip_bad_images ? data::BadImages::left_out : data::BadImages::refused});
}

void check_model_reads(const settings::Recipe& recipe, settings::SaidBy said_by) {
  const bool reads_text = frontend::language_model_size(recipe.model).has_value();
  for (const settings::Knob& knob : settings::knobs()) {
    if (is_same(knob, recipe, settings::Recipe())) continue;
    if (knob.reads == data::Kind::text && !reads_text) own_shape(recipe.model, 0);  // complains when there is no such model
    refuse_for_other_data(knob, recipe, reads_text ? data::Kind::text : data::Kind::images, said_by);
  }
}

data::Description random_description(const settings::Recipe& recipe) {
  if (const auto size = frontend::language_model_size(recipe.model)) {
    return {.name = "random", .kind = data::Kind::text, .text = {.length = recipe.length.value_or(size->context)}};
  }
  const Shape shape = own_shape(recipe.model, recipe.image_size.value_or(0));
  // No classes of its own: the model's stay.
  return {.name = "random", .channels = shape[1], .height = shape[2], .width = shape[3]};
}

Backend open_backend(const settings::Recipe& recipe) {
  if (recipe.device == "cuda") return backends::load_cuda_backend();
  return backends::cpu_backend(thread_count(static_cast<int>(recipe.threads)));
}

void finish_model(Program& model, const settings::Recipe& recipe) {
  frontend::freeze(model, recipe.freeze);
  if (recipe.label_smoothing > 0) frontend::smooth_labels(model, recipe.label_smoothing);
}

std::string_view suitable_optimizer(const Program& model) {
  const Section* forward = model.find_section(SectionKind::forward);
  const NodeId loss = forward == nullptr ? NodeId::none() : find_loss(*forward);
  // Language models train badly without a step of its own for every parameter.
  return loss.valid() && forward->nodes[loss.index()].op->loss->unit == "tokens" ? "adamw" : "sgd";
}

settings::Recipe with_optimizer(settings::Recipe recipe, const BuildModel& model, settings::SaidBy said_by) {
  const auto suitable = [&] {
    return recipe.optimizer.kind ? std::string_view(*recipe.optimizer.kind)
                                 : suitable_optimizer(model(recipe.methods.microbatch.value_or(recipe.batch)));
  };
  return with_whole_optimizer(recipe, suitable(), said_by);
}

settings::Recipe with_optimizer(settings::Recipe recipe, settings::SaidBy said_by) {
  const auto model = [name = recipe.model](std::int64_t /*microbatch*/) { return frontend::build_zoo_model(name, {.batch = 1}); };
  return with_optimizer(std::move(recipe), model, said_by);
}

FitRequest request_of(BuildModel model, const settings::Recipe& recipe, CostTable costs) {
  const settings::SparseRecipe& sparse = recipe.sparse;
  ops::UpdateOptions update = update_options(with_optimizer(recipe, model).optimizer);
  return {.model = std::move(model),
          .options = {.batch = recipe.batch,
                      .update = std::move(update),
                      .sparse = {.method = parse_sparse_method(sparse.method).value_or(SparseMethod::dsr),
                                 .rewire_fraction = sparse.rewire_fraction,
                                 .threshold = sparse.threshold},
                      .costs = std::move(costs)},
          .given = recipe.methods,
          .budget = recipe.budget_bytes,
          .min_microbatch = recipe.min_microbatch.value_or(10),
          .allowed = parse_allowance(recipe.allow),
          .narrow_precision = recipe.device == "cuda" ? DType::f16 : DType::bf16,
          .stochastic_rounding = recipe.rounding ? std::optional(*recipe.rounding == "stochastic") : std::nullopt};
}

FitRequest fit_request(const settings::Recipe& recipe, const data::Description& data, CostTable costs) {
  if (const auto size = frontend::language_model_size(recipe.model))
    return language_request(recipe, *size, data, std::move(costs));
  if (data.kind == data::Kind::text)
    throw_user_error("'{}' is text, and '{}' takes images; give a language model such as gpt-small", data.name, recipe.model);
  const std::int64_t classes = recipe.classes.value_or(data.classes);
  if (classes < data.classes) {
    throw_user_error("the data '{}' has {} classes; a classifier of {} cannot tell them apart", data.name, data.classes, classes);
  }
  if (data.channels != 3 || data.height != data.width) {
    throw_user_error("the images of '{}' are {}x{} with {} channels; models take square ones with 3", data.name, data.height,
                     data.width, data.channels);
  }
  const auto build = [recipe, data, classes](std::int64_t microbatch) {
    Program model = frontend::build_zoo_model(recipe.model, {.batch = microbatch,
                                                             .classes = classes,
                                                             .image_size = data.height,
                                                             .augment = augments(recipe),
                                                             .mean = data.mean,
                                                             .std = data.std,
                                                             .statistics_group = recipe.methods.statistics_group.value_or(0)});
    finish_model(model, recipe);
    return model;
  };
  return request_of(build, recipe, std::move(costs));
}

settings::Recipe without_statistics_of_batches(settings::Recipe recipe) {
  recipe.methods.statistics_group.reset();
  return recipe;
}

Fit fit_recipe(const settings::Recipe& recipe, const data::Description& data, const Backend& backend, CostTable costs) {
  return fit(fit_request(recipe, data, std::move(costs)), backend);
}

std::vector<std::string> unkept_limits(const FitRequest& request, const Plan& plan) {
  const auto& checkpoint = request.given.checkpoint;
  if (!checkpoint || checkpoint->limit == Bytes(0)) return {};
  Bytes taken;
  for (std::size_t i = 0; i < plan.sections.size(); ++i) {
    if (plan.program.sections[i].kind == SectionKind::micro) taken = plan.sections[i].height;
  }
  if (taken <= checkpoint->limit) return {};
  return {fmt::format(
      "checkpoint {} asks for at most {} beside the states; the least that was found is {} bytes ({}), which this plan takes",
      to_string(*checkpoint), counted(checkpoint->limit.count(), "byte"), taken.count(), format_bytes(taken))};
}

Plan adopt_plan(Plan plan, const std::filesystem::path& path, const settings::Recipe& recipe, const data::Description& data,
                const Backend& backend) {
  const FitRequest request = fit_request(recipe, data);
  try {
    io::adopt(plan, lower_model(request.model(plan.program.microbatch), backend, options_for(request, request.given)));
    io::check_kernels(plan, backend);
  } catch (const UserError& error) {
    throw_user_error("'{}': {}", path.string(), error.what());
  }
  if (recipe.budget_bytes && plan.planned_peak_bytes > *recipe.budget_bytes) {
    throw DoesNotFit(
        fmt::format("the plan in '{}' does not fit {} bytes: it takes {} bytes ({}); give that much, or leave out --plan",
                    path.string(), recipe.budget_bytes->count(), plan.planned_peak_bytes.count(),
                    format_bytes(plan.planned_peak_bytes)),
        plan.planned_peak_bytes.count());
  }
  return plan;
}

Bytes plain_peak(const settings::Recipe& recipe, const data::Description& data, const Backend& backend) {
  FitRequest plain = fit_request(recipe, data);
  plain.budget.reset();
  plain.given = {.precision = plain.given.precision,
                 .momentum_bits = plain.given.momentum_bits,
                 .moment_bits = plain.given.moment_bits,
                 .statistics_group = plain.given.statistics_group,
                 .offload = plain.given.offload,
                 .drop_gradients = plain.given.drop_gradients,
                 .prepack_weights = plain.given.prepack_weights};
  return fit(plain, backend).plan.planned_peak_bytes;
}

Methods methods_of(const Plan& plan, const Methods& otherwise) {
  Methods methods = plan.methods;
  if (!methods.precision) {
    methods.precision = otherwise.precision;
    methods.nonzero = otherwise.nonzero;
    methods.momentum_bits = otherwise.momentum_bits;
    methods.moment_bits = otherwise.moment_bits;
  }
  if (!methods.statistics_group) methods.statistics_group = otherwise.statistics_group;
  if (!methods.checkpoint) {
    methods.checkpoint = otherwise.checkpoint;
    methods.workspace_limit = otherwise.workspace_limit;
  }
  return methods;
}

train::LoopSettings loop_settings(const settings::Recipe& recipe, const data::Description& data) {
  const std::uint64_t epoch = train::steps_per_epoch(data, recipe.batch);
  const auto epochs_to_steps = [&](double epochs) {
    return static_cast<std::uint64_t>(std::llround(epochs * static_cast<double>(epoch)));
  };
  train::LoopSettings settings;
  settings.total_steps =
      recipe.steps ? static_cast<std::uint64_t>(*recipe.steps) : static_cast<std::uint64_t>(recipe.epochs.value_or(1)) * epoch;
  settings.total_steps = std::max<std::uint64_t>(1, settings.total_steps);
  if (recipe.eval_every) settings.eval_every = static_cast<std::uint64_t>(*recipe.eval_every);
  if (recipe.snapshot_every) settings.snapshot_every = static_cast<std::uint64_t>(*recipe.snapshot_every);
  settings.keep = static_cast<std::size_t>(recipe.keep);

  const settings::ScheduleRecipe& asked = recipe.schedule;
  train::Schedule& schedule = settings.schedule;
  schedule.base = *with_optimizer(recipe).optimizer.learning_rate;
  schedule.warmup_steps = static_cast<std::uint64_t>(asked.warmup_steps);
  schedule.warmup_start = asked.warmup_from;
  schedule.total_steps = settings.total_steps;
  schedule.gamma = asked.gamma;
  schedule.final = asked.final * schedule.base;
  for (const double milestone : asked.milestones) schedule.milestones.push_back(epochs_to_steps(milestone));
  schedule.kind = asked.kind == "cosine"         ? train::Schedule::Kind::cosine
                  : asked.kind == "linear"       ? train::Schedule::Kind::linear
                  : asked.kind == "step"         ? train::Schedule::Kind::step
                  : asked.kind == "inverse-sqrt" ? train::Schedule::Kind::inverse_sqrt
                                                 : train::Schedule::Kind::constant;
  train::check(schedule);
  if (recipe.methods.nonzero && recipe.sparse.method != "fixed") {
    for (const double every : recipe.sparse.rewire_every) settings.rewiring.every.push_back(static_cast<std::uint64_t>(every));
    for (const double milestone : recipe.sparse.rewire_milestones)
      settings.rewiring.milestones.push_back(epochs_to_steps(milestone));
  }
  return settings;
}

void configure(train::Session& session, const settings::Recipe& recipe) {
  if (recipe.optimizer.clip_norm) session.set_clip_norm(*recipe.optimizer.clip_norm);
  set_loss_scale(session, static_cast<std::uint64_t>(recipe.loss_scale_growth.value_or(train::LossScale::kGrowAfter)));
}

void set_loss_scale(train::Session& session, std::uint64_t grow_after) {
  if (session.plan().methods.precision != DType::f16) return;
  const Program& program = session.plan().program;
  const Section* update = program.find_section(SectionKind::update);
  const bool finds_overflow = update != nullptr && std::ranges::any_of(update->nodes, [](const Node& node) {
                                return node.attributes.integer_or("finds_overflow", 0) != 0;
                              });
  if (finds_overflow) {
    session.set_loss_scale(train::LossScale::kFirst);
    session.follow_gradients(grow_after);
  } else {
    // Nothing is trained, or the plan is of a time when the scale was fixed.
    session.set_loss_scale(1024);
  }
}

}  // namespace snug
