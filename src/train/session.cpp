#include "train/session.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/counted.h"
#include "base/error.h"
#include "io/elements.h"
#include "ops/ops.h"
#include "train/initial_values.h"

namespace snug::train {

namespace {

// The one kind of program that needs no loss.
bool decodes(const Program& program) { return program.find_section(SectionKind::decode) != nullptr; }

}  // namespace

Session::Session(Plan plan, Backend backend, std::uint64_t seed, Start start)
    : plan_(std::make_unique<const Plan>(std::move(plan))),
      backend_(std::make_unique<const Backend>(std::move(backend))),
      executor_(std::make_unique<Executor>(*plan_, *backend_)),
      loss_(decodes(plan_->program) ? ProgramLoss() : loss_of(plan_->program)),
      seed_(seed) {
  const Program& program = plan_->program;
  for (std::size_t s = 0; s < program.states.size(); ++s) {
    const State& state = program.states[s];
    if (state.role != Role::input) continue;
    const std::int64_t bytes = state.type.bytes().count();
    if (bytes % program.microbatch != 0)
      throw_user_error("the input '{}' of '{}' has {} bytes, which {} examples do not share evenly", state.name, program.name,
                       bytes, program.microbatch);
    inputs_.push_back(
        {.state = StateId(s), .name = state.name, .example_bytes = static_cast<std::size_t>(bytes / program.microbatch)});
  }
  gradient_norm_ = program.gradient_norm;
  if (start == Start::from_file) return;
  executor_->write_scalars({.seed = seed_});
  executor_->run(SectionKind::init);
  is_initialized_ = true;
}

void Session::initialize_all_but(std::span<const StateId> given) {
  if (is_initialized_) return;
  if (plan_->program.find_section(SectionKind::init) != nullptr) executor_->write_scalars({.seed = seed_});
  for (const std::size_t node : init_nodes_without(plan_->program, given)) executor_->run_node(SectionKind::init, node);
  derive();
  is_initialized_ = true;
}

void Session::set_loss_scale(double loss_scale) {
  if (!(loss_scale > 0 && std::isfinite(loss_scale)))
    throw_user_error("a loss scale of {} is not possible; use a number above 0", loss_scale);
  const Section* update = plan_->program.find_section(SectionKind::update);
  const auto steps = [](const Node& node) { return node.op->is_early_step; };
  if (loss_scale != 1 && update != nullptr && std::any_of(update->nodes.begin(), update->nodes.end(), steps)) {
    throw_user_error(
        "a loss scale of {} does not go with drop_gradients: what was added to the momentum under one scale cannot be taken for "
        "another; leave out one of the two",
        loss_scale);
  }
  loss_scale_.scale = loss_scale;
}

void Session::follow_gradients(std::uint64_t grow_after) {
  if (grow_after < 1) throw UserError("a loss scale cannot grow after 0 steps; use at least 1");
  if (!gradient_norm_.valid())
    throw_user_error("the program of '{}' does not look for gradients that overflow; compile it with finds_overflow",
                     plan_->program.name);
  grow_after_ = grow_after;
  if (clip_norm_ == 0) clip_norm_ = std::numeric_limits<float>::infinity();
}

void Session::set_clip_norm(double clip_norm) {
  if (!(clip_norm > 0)) throw_user_error("gradients cannot be clipped to {}; use a number above 0", clip_norm);
  if (!gradient_norm_.valid())
    throw_user_error("the program of '{}' does not clip gradients; compile it with a clip_norm above 0", plan_->program.name);
  clip_norm_ = static_cast<float>(clip_norm);
}

double Session::gradient_norm() const {
  if (!gradient_norm_.valid())
    throw_user_error("the program of '{}' does not measure gradients; compile it with a clip_norm above 0", plan_->program.name);
  GradientNorm norm;
  executor_->read(gradient_norm_, std::as_writable_bytes(std::span(&norm, 1)));
  return norm.norm;
}

StateId Session::required_state(std::string_view name) const {
  const StateId id = plan_->program.find_state(name);
  if (!id.valid()) throw_user_error("the model '{}' has no '{}'", plan_->program.name, name);
  return id;
}

std::string Session::input_names() const {
  std::string names;
  for (const StagedInput& input : inputs_) names += fmt::format("{}'{}'", names.empty() ? "" : ", ", input.name);
  return names;
}

void Session::check(const Examples& examples) const {
  if (examples.count == 0) throw UserError("a batch has no examples; give at least one");
  for (const data::NamedBytes& given : examples.inputs) {
    const auto has_its_name = [&](const auto& input) { return input.name == given.name; };
    if (std::ranges::count_if(examples.inputs, has_its_name) > 1) throw_user_error("the batch has '{}' twice", given.name);
    const auto input = std::ranges::find_if(inputs_, has_its_name);
    if (input == inputs_.end())
      throw_user_error("the batch has '{}', which '{}' does not take; it takes {}", given.name, plan_->program.name,
                       input_names());
    if (given.bytes.size() != examples.count * input->example_bytes) {
      throw_user_error("{} came with {} bytes of '{}'; one example has {} bytes", counted(examples.count, "example"),
                       given.bytes.size(), given.name, input->example_bytes);
    }
  }
  for (const StagedInput& input : inputs_) {
    if (std::ranges::find(examples.inputs, input.name, &data::NamedBytes::name) == examples.inputs.end())
      throw_user_error("the batch has no '{}'; '{}' takes {}", input.name, plan_->program.name, input_names());
  }
}

std::span<const std::byte> Session::bytes_of(const Examples& examples, StateId input) const {
  return std::ranges::find(examples.inputs, plan_->program.state(input).name, &data::NamedBytes::name)->bytes;
}

SectionId Session::section_for(SectionKind kind, std::size_t examples) const {
  RunShape smallest;
  for (const Section& section : plan_->program.sections) {
    SNUG_CHECK(section.shape.length == 0, "section {} takes shorter examples, which are never staged", to_string(section.id()));
    const bool has_room = section.kind == kind && section.shape.examples >= static_cast<std::int64_t>(examples);
    if (has_room && (smallest == RunShape{} || section.shape < smallest)) smallest = section.shape;
  }
  return {kind, smallest};
}

double Session::count_labeled_rows(const Examples& examples) const {
  const std::span<const std::byte> bytes = bytes_of(examples, loss_.labels);
  std::size_t count = 0;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::int32_t)) {
    std::int32_t label = 0;
    std::memcpy(&label, bytes.data() + at, sizeof label);
    if (label >= 0 && label < loss_.classes) ++count;
  }
  return static_cast<double>(count);
}

double Session::total_weight(const Examples& examples) const {
  if (!loss_.weights.valid()) {
    if (loss_.facts->ignores_other_labels && loss_.labels.valid()) return count_labeled_rows(examples);
    return static_cast<double>(examples.count) * static_cast<double>(loss_.rows_per_example);
  }
  const std::span<const std::byte> bytes = bytes_of(examples, loss_.weights);
  const DType dtype = plan_->program.state(loss_.weights).type.dtype;
  const std::size_t each = static_cast<std::size_t>(bits_per_element(dtype)) / 8;
  double total = 0;
  for (std::size_t row = 0; row < bytes.size() / each; ++row) {
    double weight = 0;
    io::convert_elements(dtype, bytes.subspan(row * each, each), DType::f64, std::as_writable_bytes(std::span(&weight, 1)));
    if (!(weight >= 0 && std::isfinite(weight)))
      throw_user_error("row {} of '{}' is {}; weights are numbers from 0 on", row, plan_->program.state(loss_.weights).name,
                       weight);
    total += weight;
  }
  return total;
}

void Session::stage(const Examples& examples, std::size_t first, std::size_t count) {
  // Rows of padding have no weight, but must be numbers: what an earlier microbatch left there, or the zeros that a session
  // starts with.
  for (const StagedInput& input : inputs_) {
    executor_->write(input.state,
                     bytes_of(examples, input.state).subspan(first * input.example_bytes, count * input.example_bytes));
  }
}

void Session::check_initialized() const {
  SNUG_CHECK(is_initialized_, "the session of '{}' starts from a file that has not been read", plan_->program.name);
}

Result Session::run(SectionKind kind, const Examples& examples, double total_weight) {
  check_initialized();
  const auto microbatch = static_cast<std::size_t>(plan_->program.microbatch);
  const std::size_t total = examples.count;
  SNUG_CHECK(total <= std::numeric_limits<std::uint32_t>::max(), "{} examples in one batch", total);
  executor_->write_metrics({});
  for (std::size_t first = 0; first < total; first += microbatch) {
    const std::size_t count = std::min(microbatch, total - first);
    stage(examples, first, count);
    executor_->write_scalars({.seed = seed_,
                              .step = step_,
                              .first_example = first,
                              .valid_examples = static_cast<std::uint32_t>(count),
                              .batch_examples = static_cast<std::uint32_t>(total),
                              .total_weight = total_weight,
                              .learning_rate = learning_rate_,
                              .loss_scale = loss_scale_.scale,
                              .is_first_microbatch = std::uint16_t{first == 0},
                              .clip_norm = clip_norm_});
    executor_->run(section_for(kind, count));
  }
  const Metrics metrics = executor_->read_metrics();
  return {.loss = metrics.loss, .score = metrics.score, .weight = metrics.weight, .examples = static_cast<std::int64_t>(total)};
}

Result Session::train_step(const Examples& examples) {
  check(examples);
  if (examples.count > static_cast<std::size_t>(plan_->program.batch)) {
    throw_user_error("a step got {} examples; it was planned for at most {}", examples.count, plan_->program.batch);
  }
  const double total = total_weight(examples);
  if (total == 0) throw UserError("the weights of a batch are all 0; give at least one row a weight");
  if (gradient_norm_.valid() && clip_norm_ == 0)
    throw_user_error("the program of '{}' clips gradients, but not to what; set the clip norm before the first step",
                     plan_->program.name);
  Result result = run(SectionKind::micro, examples, total);
  if (!std::isfinite(result.loss)) {
    result.skipped = true;
    // Everything that an update reads from the block.
    executor_->write_scalars(
        {.learning_rate = learning_rate_, .loss_scale = loss_scale_.scale, .skip_update = 1, .clip_norm = clip_norm_});
  }
  executor_->run(SectionKind::update);
  if (grow_after_ > 0) adjust_loss_scale(result);
  ++step_;
  return result;
}

void Session::adjust_loss_scale(Result& result) {
  if (std::isfinite(result.loss) && std::isfinite(gradient_norm())) return loss_scale_.grow(grow_after_);
  result.skipped = true;
  result.overflowed = loss_scale_.shrink();
}

Result Session::evaluate(const Examples& examples) {
  check(examples);
  return run(SectionKind::eval, examples, total_weight(examples));
}

void Session::decode(const Examples& examples) {
  check(examples);
  check_initialized();
  const auto most = static_cast<std::size_t>(plan_->program.microbatch);
  SNUG_CHECK(examples.count <= most, "{} examples at once where {} were planned", examples.count, most);
  stage(examples, 0, examples.count);
  if (plan_->program.scalars.valid())
    executor_->write_scalars({.seed = seed_, .step = step_, .valid_examples = static_cast<std::uint32_t>(examples.count)});
  executor_->run(SectionKind::decode);
}

void Session::run_periodic() {
  if (plan_->program.find_section(SectionKind::periodic) == nullptr) return;
  executor_->write_scalars({.seed = seed_, .step = step_});
  executor_->run(SectionKind::periodic);
}

Session::Counters Session::counters() const {
  return {.seed = seed_, .step = step_, .learning_rate = learning_rate_, .loss_scale = loss_scale_};
}

void Session::restore(const Counters& counters) {
  set_loss_scale(counters.loss_scale.scale);
  loss_scale_ = counters.loss_scale;
  seed_ = counters.seed;
  step_ = counters.step;
  learning_rate_ = counters.learning_rate;
}

LogicalOrder Session::logical_order(StateId id) const {
  const State& state = plan_->program.state(id);
  return {state.type, *backend_, executor_->arena(state.space), plan_->state_offsets[id.index()]};
}

std::size_t Session::logical_bytes(StateId id) const { return logical_order(id).bytes(); }

void Session::read_logical(StateId id, std::span<std::byte> target) const {
  SNUG_CHECK(target.size() == logical_bytes(id), "state '{}' has {} bytes, not {}", plan_->program.state(id).name,
             logical_bytes(id), target.size());
  logical_order(id).read(0, target);
}

void Session::write_logical(StateId id, std::span<const std::byte> source) {
  SNUG_CHECK(source.size() == logical_bytes(id), "state '{}' has {} bytes, not {}", plan_->program.state(id).name,
             logical_bytes(id), source.size());
  logical_order(id).write(0, source);
  derive();
}

void Session::read_logical_part(StateId id, std::size_t begin, std::span<std::byte> target) const {
  logical_order(id).read(begin, target);
}

void Session::read_logical_in_pieces(StateId id, const std::function<void(std::span<const std::byte>)>& use) const {
  read_logical_in_pieces(id, 0, logical_bytes(id), use);
}

void Session::write_logical_in_pieces(StateId id, const std::function<void(std::span<std::byte>)>& fill) {
  write_logical_in_pieces(id, 0, logical_bytes(id), fill);
}

void Session::read_logical_in_pieces(StateId id, std::size_t begin, std::size_t size,
                                     const std::function<void(std::span<const std::byte>)>& use) const {
  logical_order(id).read_in_pieces(begin, size, use);
}

void Session::write_logical_in_pieces(StateId id, std::size_t begin, std::size_t size,
                                      const std::function<void(std::span<std::byte>)>& fill) {
  logical_order(id).write_in_pieces(begin, size, fill);
}

void Session::derive() {
  if (plan_->program.find_section(SectionKind::derive) != nullptr) executor_->run(SectionKind::derive);
}

StateId Session::floating_state(const std::string& name) const {
  const StateId id = required_state(name);
  const Type& type = plan_->program.state(id).type;
  if (!is_floating(type.dtype)) throw_user_error("'{}' is {}, not a floating-point state", name, to_string(type));
  return id;
}

namespace {

void check_count(const std::string& name, const Type& type, std::size_t values) {
  if (values != static_cast<std::size_t>(type.elements()))
    throw_user_error("'{}' is {} and takes {} values, not {}", name, to_string(type.shape), type.elements(), values);
}

}  // namespace

std::vector<double> Session::read_state(const std::string& name) const {
  const StateId id = floating_state(name);
  const Type& type = plan_->program.state(id).type;
  std::vector<std::byte> stored(logical_bytes(id));
  read_logical(id, stored);
  std::vector<double> values(static_cast<std::size_t>(type.elements()));
  io::convert_elements(type.dtype, stored, DType::f64, std::as_writable_bytes(std::span(values)));
  return values;
}

void Session::write_state(const std::string& name, std::span<const double> values) {
  const StateId id = floating_state(name);
  const Type& type = plan_->program.state(id).type;
  check_count(name, type, values.size());
  std::vector<std::byte> stored(logical_bytes(id));
  io::convert_elements(DType::f64, std::as_bytes(values), type.dtype, stored);
  write_logical(id, stored);
}

std::vector<float> Session::read_floats(const std::string& name) const {
  const StateId id = floating_state(name);
  const Type& type = plan_->program.state(id).type;
  const std::size_t element_bytes = static_cast<std::size_t>(bits_per_element(type.dtype)) / 8;
  std::vector<float> values(static_cast<std::size_t>(type.elements()));
  std::size_t done = 0;
  read_logical_in_pieces(id, [&](std::span<const std::byte> piece) {
    const std::size_t count = piece.size() / element_bytes;
    io::convert_elements(type.dtype, piece, DType::f32, std::as_writable_bytes(std::span(values).subspan(done, count)));
    done += count;
  });
  return values;
}

void Session::write_floats(const std::string& name, std::span<const float> values) {
  const StateId id = floating_state(name);
  const Type& type = plan_->program.state(id).type;
  check_count(name, type, values.size());
  const std::size_t element_bytes = static_cast<std::size_t>(bits_per_element(type.dtype)) / 8;
  std::size_t done = 0;
  write_logical_in_pieces(id, [&](std::span<std::byte> piece) {
    const std::size_t count = piece.size() / element_bytes;
    io::convert_elements(DType::f32, std::as_bytes(values.subspan(done, count)), type.dtype, piece);
    done += count;
  });
  derive();
}

}  // namespace snug::train
