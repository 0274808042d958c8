#include "passes/model/add_update.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "ir/builder.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/sparse/sparse.h"
#include "passes/remove_states.h"

namespace snug {

namespace {

class UpdateAdder {
 public:
  UpdateAdder(Program& program, const ops::UpdateOptions& options)
      : program_(program),
        options_(options),
        rule_(ops::find_update_rule(options.rule)),
        first_new_(program.states.size()),
        store_(ops::sparse_store(program)),
        builder_(program.states, update_) {
    if (!(options.clip_norm >= 0))
      throw_user_error("gradients cannot be clipped to {}; use a number above 0, or 0 for no clipping", options.clip_norm);
    for (std::size_t i = 0; i < program.states.size(); ++i) {
      const State& state = program.states[i];
      if (state.role == Role::gradient) trained_.push_back({.parameter = state.owner, .gradient = StateId(i)});
    }
    std::sort(trained_.begin(), trained_.end(), [](const Trained& a, const Trained& b) { return a.parameter < b.parameter; });
  }

  void run() {
    check_names(options_.settings);
    for (const ops::ParameterGroup& group : options_.groups) check_names(group.settings);
    Attributes settings = rule_.defaults();
    for (const auto& [name, value] : options_.settings.entries()) settings.set(name, value);
    rule_.check(settings);
    if (options_.looks_at_all_gradients() && !trained_.empty()) measure_gradients();
    for (const Trained& trained : trained_) add_update_of(trained, settings);
    clear_new_states();
    for (Section& section : program_.sections) clear_beside_moved(section);
    const auto micro = std::find_if(program_.sections.rbegin(), program_.sections.rend(),
                                    [](const Section& section) { return section.kind == SectionKind::micro; });
    SNUG_CHECK(micro != program_.sections.rend(), "'{}' has nothing that makes gradients", program_.name);
    program_.sections.insert(micro.base(), std::move(update_));
  }

 private:
  struct Trained {
    StateId parameter, gradient;
  };

  void check_names(const Attributes& given) const {
    const Attributes known = rule_.defaults();
    for (const auto& [name, value] : given.entries()) {
      if (!known.has(name)) throw_user_error("the update rule '{}' has no setting '{}'", rule_.name, name);
    }
  }

  Attributes settings_of(const State& parameter, Attributes settings) const {
    for (const ops::ParameterGroup& group : options_.groups) {
      if (!ops::matches(group, parameter.name)) continue;
      for (const auto& [name, value] : group.settings.entries()) settings.set(name, value);
      rule_.check(settings);
      break;
    }
    return settings;
  }

  StateId add_state(State state) {
    program_.states.push_back(std::move(state));
    return StateId(program_.states.size() - 1);
  }

  // The norm of all gradients together and the factor that clips it, in the state that the host reads.
  void measure_gradients() {
    ValueId sum = ValueId::none();
    for (const Trained& trained : trained_) {
      const std::string name = program_.state(trained.parameter).name;
      std::vector<ValueId> inputs{builder_.read(trained.gradient)};
      if (sum.valid()) inputs.push_back(sum);
      sum = builder_
                .emit(ops::sum_of_squares, std::move(inputs), {},
                      {.name = name + ".squares", .layer = name, .role = Role::scalar, .phase = Phase::update})
                .front();
    }
    program_.gradient_norm = add_state({.name = "gradient_norm", .type = ops::gradient_norm_type(), .role = Role::scalar});
    Attributes attributes;
    if (options_.finds_overflow) attributes.set("finds_overflow", std::int64_t{1});
    norm_ =
        builder_
            .emit(ops::clip_factor, {sum, builder_.read(program_.scalars)}, attributes,
                  {.layer = "gradient_norm", .role = Role::scalar, .phase = Phase::update, .writes = {program_.gradient_norm}})
            .front();
  }

  // How often the parameter was updated since what is kept beside it was reset, this time included. Where a parameter's elements
  // move, that is another number than the program's.
  StateId count_update(StateId parameter) {
    const bool is_moved = std::ranges::any_of(program_.sections, [&](const Section& section) {
      return std::ranges::any_of(section.nodes, [&](const Node& node) { return moved_by(node, section) == parameter; });
    });
    if (!is_moved && program_.updates.valid()) return program_.updates;
    const std::string& name = program_.state(parameter).name;
    State count{.name = "updates", .type = ops::updates_type(), .role = Role::optimizer};
    if (is_moved) {
      count.name = name + ".updates";
      count.owner = parameter;
      count.purpose = "updates";
    }
    const std::string layer = is_moved ? name : count.name;
    const StateId updates = add_state(std::move(count));
    if (!is_moved) program_.updates = updates;
    std::vector<ValueId> inputs{builder_.read(updates), builder_.read(program_.scalars)};
    if (norm_.valid()) inputs.push_back(norm_);
    builder_.emit(ops::count_update, std::move(inputs), {},
                  {.layer = layer, .role = Role::optimizer, .phase = Phase::update, .writes = {updates}});
    return updates;
  }

  void add_update_of(const Trained& trained, const Attributes& settings) {
    const State parameter = program_.state(trained.parameter);
    const bool is_vector = parameter.type.shape.rank() < 2 && trained.parameter != store_;
    ops::ParameterUpdate update =
        rule_.update_of({.type = parameter.type, .is_vector = is_vector}, settings_of(parameter, settings));
    const StateId updates = update.op->update->reads_updates ? count_update(trained.parameter) : StateId::none();
    std::vector<ValueId> inputs{builder_.read(trained.parameter), builder_.read(trained.gradient),
                                builder_.read(program_.scalars)};
    std::vector<StateId> writes{trained.parameter, trained.gradient};
    bool has_16_bits = bits_per_element(parameter.type.dtype) == 16;
    for (ops::ParameterUpdate::Kept& kept : update.states) {
      has_16_bits = has_16_bits || bits_per_element(kept.type.dtype) == 16;
      writes.push_back(add_state({.name = fmt::format("{}.{}", parameter.name, kept.suffix),
                                  .type = std::move(kept.type),
                                  .role = Role::optimizer,
                                  .owner = trained.parameter,
                                  .purpose = std::move(kept.purpose)}));
      inputs.push_back(builder_.read(writes.back()));
    }
    if (updates.valid()) inputs.push_back(builder_.read(updates));
    if (norm_.valid()) inputs.push_back(norm_);
    if (options_.stochastic_rounding && has_16_bits) {
      update.attributes.set("stochastic", std::int64_t{1});
      update.attributes.set("key", static_cast<std::int64_t>(trained.parameter.index()));
    }
    builder_.emit(*update.op, std::move(inputs), std::move(update.attributes),
                  {.layer = parameter.name, .role = Role::parameter, .phase = Phase::update, .writes = std::move(writes)});
  }

  void clear_new_states() {
    Section* init = program_.find_section(SectionKind::init);
    if (init == nullptr) return;
    SectionBuilder builder(program_.states, *init);
    for (std::size_t i = first_new_; i < program_.states.size(); ++i) {
      const State& state = program_.states[i];
      builder.emit(ops::fill, {builder.read(StateId(i))}, {{"value", 0.0}},
                   {.layer = state.name, .role = state.role, .phase = Phase::init, .writes = {StateId(i)}});
    }
  }

  // The parameter whose elements the node moves; none: it moves none.
  static StateId moved_by(const Node& node, const Section& section) {
    return node.op->moves_elements ? section.state_of(node.outputs.front()) : StateId::none();
  }

  // What was kept for elements that have moved elsewhere does not apply to those that are there now.
  void clear_beside_moved(Section& section) {
    for (std::size_t at = 0; at < section.nodes.size(); ++at) {
      if (section.nodes[at].op->moves_elements) clear_beside_moved(section, at);
    }
  }

  void clear_beside_moved(Section& section, std::size_t at) {
    const StateId moved = moved_by(section.nodes[at], section);
    const Type& type = program_.state(moved).type;
    SectionBuilder builder(program_.states, section);
    bool takes_one = false;
    for (std::size_t i = first_new_; i < program_.states.size(); ++i) {
      const State& state = program_.states[i];
      if (state.owner != moved) continue;
      if (state.type == type && !std::exchange(takes_one, true)) {
        section.nodes[at].inputs.push_back(builder.read(StateId(i)));
        section.nodes[at].outputs.push_back(builder.write(StateId(i)));
      } else if (state.purpose != "codes") {  // codes need no clearing: their scales are cleared
        builder.emit(ops::fill, {builder.read(StateId(i))}, {{"value", 0.0}},
                     {.layer = section.nodes[at].layer, .role = state.role, .phase = Phase::update, .writes = {StateId(i)}});
      }
    }
  }

  Program& program_;
  const ops::UpdateOptions& options_;
  const ops::UpdateRule& rule_;
  std::size_t first_new_;         // of the states that are added here
  StateId store_;                 // of sparse weights
  std::vector<Trained> trained_;  // in the order of the parameters
  Section update_{.kind = SectionKind::update, .values = {}, .nodes = {}};
  SectionBuilder builder_;
  ValueId norm_ = ValueId::none();
};

}  // namespace

Program add_update(Program program, const ops::UpdateOptions& options) {
  UpdateAdder(program, options).run();
  return program;
}

}  // namespace snug
