#include "plan/plan.h"

#include <algorithm>

#include "base/error.h"
#include "ir/text.h"
#include "placement/validate.h"

namespace snug {

Bytes Plan::offset_of(std::size_t section, ValueId id) const {
  const Value& value = program.sections[section].value(id);
  if (value.is_state()) return state_offsets[value.state.index()];
  const BufferId buffer = sections[section].liveness.buffer_of[id.index()];
  SNUG_CHECK(buffer.valid(), "%{} is not placed", value.name);
  return sections[section].offsets[buffer.index()];
}

std::vector<std::size_t> buffers_in(const Liveness& liveness, MemorySpace space) {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < liveness.buffers.size(); ++i) {
    if (liveness.buffers[i].space == space) result.push_back(i);
  }
  return result;
}

placement::Problem placement_problem(const Liveness& liveness, MemorySpace space, Bytes red_zone) {
  placement::Problem problem;
  problem.items.reserve(liveness.buffers.size());
  for (const Buffer& buffer : liveness.buffers) {
    if (buffer.space != space) continue;
    problem.items.push_back({.size = buffer.size + red_zone * 2, .begin = buffer.begin, .end = buffer.end});
  }
  return problem;
}

namespace {

std::optional<std::string> find_state_violation(const Plan& plan, MemorySpace space) {
  const auto& states = plan.program.states;
  const Bytes persistent_bytes = plan.in(space).persistent_bytes;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i].space == space) order.push_back(i);
  }
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return plan.state_offsets[a] < plan.state_offsets[b]; });
  Bytes free_from;
  for (const std::size_t i : order) {
    const Bytes begin = plan.state_offsets[i];
    if (begin.count() % kAlignment.count() != 0)
      return fmt::format("state '{}' lies at {}, off the alignment", states[i].name, begin.count());
    if (begin - plan.red_zone < free_from)
      return fmt::format("state '{}' at {} overlaps the one before it", states[i].name, begin.count());
    free_from = begin + states[i].type.bytes() + plan.red_zone;
  }
  if (free_from > persistent_bytes) return "the states reach beyond the persistent region";
  if (persistent_bytes.count() % kAlignment.count() != 0) return "transient values start off the alignment";
  return std::nullopt;
}

// In one memory space; the lists are complete and the lifetimes are the program's.
std::optional<std::string> find_violation_in(const Plan& plan, MemorySpace space) {
  const ArenaPlan& arena = plan.in(space);
  if (auto violation = find_state_violation(plan, space)) return violation;
  // Without transient values the arena ends with the last state, not at an alignment boundary.
  Bytes top;
  for (std::size_t i = 0; i < plan.program.states.size(); ++i) {
    const State& state = plan.program.states[i];
    if (state.space == space) top = std::max(top, plan.state_offsets[i] + state.type.bytes() + plan.red_zone);
  }
  for (std::size_t i = 0; i < plan.sections.size(); ++i) {
    const SectionPlan& section = plan.sections[i];
    placement::Placement placed{.offsets = {}, .height = section.in(space).height};
    for (const std::size_t buffer : buffers_in(section.liveness, space))
      placed.offsets.push_back(section.offsets[buffer] - plan.red_zone - arena.persistent_bytes);
    if (!placed.offsets.empty()) top = std::max(top, arena.persistent_bytes + placed.height);
    const placement::Problem problem = placement_problem(section.liveness, space, plan.red_zone);
    if (auto violation = placement::find_violation(problem, placed))
      return fmt::format("section {}: {}", name_of(plan.program.sections[i].kind), *violation);
  }
  if (top != arena.planned_peak_bytes) {
    return fmt::format("the arena has {} bytes but the last one used is {}", arena.planned_peak_bytes.count(), top.count());
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> find_violation(const Plan& plan) {
  if (plan.sections.size() != plan.program.sections.size()) return "not every section is placed";
  if (plan.state_offsets.size() != plan.program.states.size()) return "not every state has an offset";
  for (std::size_t i = 0; i < plan.sections.size(); ++i) {
    const SectionPlan& section = plan.sections[i];
    const std::string_view name = name_of(plan.program.sections[i].kind);
    if (section.liveness != liveness(plan.program.sections[i])) {
      return fmt::format("section {}: the lifetimes are not those of the program", name);
    }
    if (section.offsets.size() != section.liveness.buffers.size()) {
      return fmt::format("section {}: {} offsets for {} buffers", name, section.offsets.size(), section.liveness.buffers.size());
    }
  }
  if (auto violation = find_violation_in(plan, MemorySpace::device)) return violation;
  if (auto violation = find_violation_in(plan, MemorySpace::host)) return fmt::format("in host memory: {}", *violation);
  return std::nullopt;
}

namespace {

// The node at which the section's live buffers on the device take the most bytes.
int fullest_node(const SectionPlan& section, std::size_t nodes) {
  std::vector<std::int64_t> change(nodes + 1, 0);
  for (const Buffer& buffer : section.liveness.buffers) {
    if (buffer.space != MemorySpace::device) continue;
    change[static_cast<std::size_t>(buffer.begin)] += buffer.size.count();
    change[static_cast<std::size_t>(buffer.end)] -= buffer.size.count();
  }
  std::int64_t live = 0;
  std::int64_t most = -1;
  int fullest = 0;
  for (std::size_t i = 0; i < nodes; ++i) {
    live += change[i];
    if (live > most) {
      most = live;
      fullest = static_cast<int>(i);
    }
  }
  return fullest;
}

}  // namespace

PeakMoment peak_moment(const Plan& plan) {
  PeakMoment peak;
  std::size_t highest = 0;
  for (std::size_t i = 0; i < plan.sections.size(); ++i) {
    if (plan.sections[i].height > plan.sections[highest].height) highest = i;
  }
  const auto add = [&](const std::string& name, Bytes size, Role role) {
    peak.by_class[static_cast<std::size_t>(class_of(role))] += size;
    peak.largest.push_back({name, size, class_of(role)});
  };
  for (const State& state : plan.program.states) {
    if (state.space == MemorySpace::device) add(state.name, state.type.bytes(), state.role);
  }
  if (!plan.program.sections.empty()) {
    const Section& section = plan.program.sections[highest];
    peak.section = section.id();
    peak.node = fullest_node(plan.sections[highest], section.nodes.size());
    if (!section.nodes.empty()) peak.node_text = print(section, section.nodes[static_cast<std::size_t>(peak.node)]);
    for (const Buffer& buffer : plan.sections[highest].liveness.buffers) {
      if (buffer.space != MemorySpace::device || buffer.begin > peak.node || buffer.end <= peak.node) continue;
      const Value& value = section.value(buffer.tenant_at(peak.node));
      add(value.name, buffer.size, value.role);
    }
  }
  Bytes sum;
  for (const Bytes bytes : peak.by_class) sum += bytes;
  peak.gap_bytes = plan.planned_peak_bytes - sum;
  std::stable_sort(peak.largest.begin(), peak.largest.end(),
                   [](const LiveValue& a, const LiveValue& b) { return a.size > b.size; });
  return peak;
}

}  // namespace snug
