#include "report/moments.h"

#include <algorithm>
#include <map>
#include <utility>

namespace snug::report {

namespace {

std::size_t class_index(Role role) { return static_cast<std::size_t>(class_of(role)); }

// Bytes of the transient values on the device alone.
std::vector<ByClass> alive_in(const Section& section, const Liveness& liveness) {
  std::vector<std::array<std::int64_t, kMemoryClasses>> change(section.nodes.size() + 1);
  for (const Buffer& buffer : liveness.buffers) {
    if (buffer.space != MemorySpace::device) continue;
    for (std::size_t i = 0; i < buffer.tenants.size(); ++i) {
      // A value holds the buffer until the next one begins: bytes may pass from one class to another.
      const int until = i + 1 < buffer.tenants.size() ? buffer.tenants[i + 1].from : buffer.end;
      const std::size_t c = class_index(section.value(buffer.tenants[i].value).role);
      change[static_cast<std::size_t>(buffer.tenants[i].from)][c] += buffer.size.count();
      change[static_cast<std::size_t>(until)][c] -= buffer.size.count();
    }
  }
  std::vector<ByClass> alive(section.nodes.size());
  ByClass now{};
  for (std::size_t i = 0; i < alive.size(); ++i) {
    for (std::size_t c = 0; c < now.size(); ++c) now[c] += Bytes(change[i][c]);
    alive[i] = now;
  }
  return alive;
}

}  // namespace

Bytes total_of(const ByClass& by_class) {
  Bytes sum;
  for (const Bytes bytes : by_class) sum += bytes;
  return sum;
}

ByClass states_by_class(const Program& program) {
  ByClass result{};
  for (const State& state : program.states) {
    if (state.space == MemorySpace::device) result[class_index(state.role)] += state.type.bytes();
  }
  return result;
}

std::vector<SectionMoments> moments_of_step(const Plan& plan) {
  const ByClass states = states_by_class(plan.program);
  std::vector<SectionMoments> result;
  for (const SectionKind kind : {SectionKind::micro, SectionKind::update}) {
    for (std::size_t i = 0; i < plan.program.sections.size(); ++i) {
      const Section& section = plan.program.sections[i];
      if (section.kind != kind) continue;
      SectionMoments moments{.section = i, .alive = alive_in(section, plan.sections[i].liveness)};
      for (ByClass& at : moments.alive) {
        for (std::size_t c = 0; c < at.size(); ++c) at[c] += states[c];
      }
      result.push_back(std::move(moments));
    }
  }
  return result;
}

std::vector<Moment> largest_moments(const Program& program, const std::vector<SectionMoments>& moments) {
  std::map<std::string_view, Moment> fullest;
  for (const SectionMoments& section : moments) {
    for (std::size_t i = 0; i < section.alive.size(); ++i) {
      const Node& node = program.sections[section.section].nodes[i];
      const Moment moment{.section = section.section, .node = i, .alive = section.alive[i]};
      const auto [entry, is_new] = fullest.try_emplace(first_components(node.layer, 2), moment);
      if (!is_new && total_of(moment.alive) > total_of(entry->second.alive)) entry->second = moment;
    }
  }
  std::vector<Moment> result;
  result.reserve(fullest.size());
  for (const auto& [key, moment] : fullest) result.push_back(moment);
  std::sort(result.begin(), result.end(), [](const Moment& a, const Moment& b) {
    if (total_of(a.alive) != total_of(b.alive)) return total_of(a.alive) > total_of(b.alive);
    return std::pair(a.section, a.node) < std::pair(b.section, b.node);
  });
  return result;
}

std::string_view first_components(std::string_view layer, int count) {
  std::size_t end = 0;
  for (int i = 0; i < count; ++i) {
    end = layer.find('.', i == 0 ? 0 : end + 1);
    if (end == std::string_view::npos) return layer;
  }
  return layer.substr(0, end);
}

}  // namespace snug::report
