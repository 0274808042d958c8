#include "passes/model/add_shape.h"

#include <utility>

#include "base/error.h"

namespace snug {

namespace {

// Why a state of one model cannot be shared with that of the other, as the end of a sentence; empty when it can.
std::string objection_to(const State& state, const State& other) {
  if (state.name != other.name) return fmt::format("one has '{}' where the other has '{}'", state.name, other.name);
  if (state.role != Role::input)
    return state.type == other.type
               ? std::string()
               : fmt::format("'{}' is {} in one and {} in the other", state.name, to_string(state.type), to_string(other.type));
  if (other.type.dtype == state.type.dtype && other.type.bytes() <= state.type.bytes()) return {};
  return fmt::format("the input '{}' has {}, for which there is no room in {}", state.name, to_string(other.type),
                     to_string(state.type));
}

}  // namespace

Program add_shape(Program model, Program other) {
  if (other.microbatch >= model.microbatch)
    throw_user_error("a shape of {} examples beside one of {} is not possible; use fewer", other.microbatch, model.microbatch);
  if (model.states.size() != other.states.size())
    throw_user_error("'{}' and '{}' are not the same model: they have other states", model.name, other.name);
  for (std::size_t i = 0; i < model.states.size(); ++i) {
    if (const std::string objection = objection_to(model.states[i], other.states[i]); !objection.empty())
      throw_user_error("'{}' and '{}' are not the same model: {}", model.name, other.name, objection);
  }
  Section forward = std::move(other.section(SectionKind::forward));
  forward.shape = {.examples = other.microbatch};
  model.sections.push_back(std::move(forward));
  return model;
}

}  // namespace snug
