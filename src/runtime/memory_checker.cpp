#include "runtime/memory_checker.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "ir/text.h"

namespace snug {

namespace {

constexpr int kRedZone = 0xB7;
constexpr int kPoison = 0xFF;  // NaN in every floating-point type

// Any changed byte changes it; FNV-1a by words.
std::uint64_t checksum_of(const std::byte* data, std::size_t bytes) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  std::size_t i = 0;
  for (; i + 8 <= bytes; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data + i, 8);
    hash = (hash ^ word) * 0x100000001b3U;
    hash ^= hash >> 29U;
  }
  for (; i < bytes; ++i) hash = (hash ^ static_cast<std::uint64_t>(data[i])) * 0x100000001b3U;
  return hash;
}

}  // namespace

MemoryChecker::MemoryChecker(const Plan& plan, const Arenas& arenas) : plan_(plan), arenas_(arenas) {
  SNUG_CHECK(plan.red_zone > Bytes(0), "checking mode needs a plan with red zones");
  SNUG_CHECK(arenas.in(MemorySpace::device).host_accessible(), "checking mode needs an arena that the host can read");
  for (std::size_t i = 0; i < plan.program.states.size(); ++i) {
    const State& state = plan.program.states[i];
    states_.push_back({.name = state.name,
                       .data = arenas.address(state.space, plan.state_offsets[i]),
                       .bytes = static_cast<std::size_t>(state.type.bytes().count())});
    come_alive(states_.back());
  }
}

void MemoryChecker::begin_section(std::size_t section) {
  section_ = section;
  buffers_.clear();
  const SectionPlan& placed = plan_.sections[section];
  for (std::size_t i = 0; i < placed.liveness.buffers.size(); ++i) {
    const Buffer& buffer = placed.liveness.buffers[i];
    buffers_.push_back({.name = plan_.program.sections[section].value(buffer.tenants.front().value).name,
                        .data = arenas_.address(buffer.space, placed.offsets[i]),
                        .bytes = static_cast<std::size_t>(buffer.size.count())});
  }
  // The host may have written states (input, scalars) since the last section.
  for (Region& state : states_) state.checksum = checksum_of(state.data, state.bytes);
}

void MemoryChecker::come_alive(Region& region) const {
  const auto zone = static_cast<std::size_t>(plan_.red_zone.count());
  std::memset(region.data - zone, kRedZone, zone);
  std::memset(region.data + region.bytes, kRedZone, zone);
  region.alive = true;
}

MemoryChecker::Region& MemoryChecker::region_of(ValueId id) {
  const Value& value = plan_.program.sections[section_].value(id);
  if (value.is_state()) return states_[value.state.index()];
  return buffers_[plan_.sections[section_].liveness.buffer_of[id.index()].index()];
}

void MemoryChecker::before_node(std::size_t index) {
  const Node& node = plan_.program.sections[section_].nodes[index];
  // Checked where it is read: that costs as much as the kernel's own reading, while checking every live value after every node
  // would be quadratic.
  for (const ValueId input : node.inputs) {
    const Region& region = region_of(input);
    if (checksum_of(region.data, region.bytes) != region.checksum) {
      throw InternalError(
          fmt::format("'{}' was changed by a node that does not write it, before {} reads it", region.name, describe(index)));
    }
  }
  const auto& buffers = plan_.sections[section_].liveness.buffers;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].begin != static_cast<int>(index)) continue;
    come_alive(buffers_[i]);
    std::memset(buffers_[i].data, kPoison, buffers_[i].bytes);
  }
}

void MemoryChecker::after_node(std::size_t index) {
  const Node& node = plan_.program.sections[section_].nodes[index];
  const std::string culprit = describe(index);
  for (const MemorySpace space : kMemorySpaces) {
    if (arenas_.has(space) && !arenas_.in(space).margins_untouched())
      throw InternalError(fmt::format("{} wrote outside the arena", culprit));
  }
  for (const Region& state : states_) check_red_zones(state, culprit);
  for (const Region& buffer : buffers_) {
    if (buffer.alive) check_red_zones(buffer, culprit);
  }
  for (const ValueId output : node.outputs) {
    Region& region = region_of(output);
    region.checksum = checksum_of(region.data, region.bytes);
  }
  const auto& buffers = plan_.sections[section_].liveness.buffers;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (!buffers_[i].alive || buffers[i].end != static_cast<int>(index) + 1) continue;
    std::memset(buffers_[i].data, kPoison, buffers_[i].bytes);
    buffers_[i].alive = false;
  }
}

void MemoryChecker::check_red_zones(const Region& region, const std::string& culprit) const {
  const auto zone = static_cast<std::ptrdiff_t>(plan_.red_zone.count());
  const auto intact = [](const std::byte* begin, const std::byte* end) {
    return std::all_of(begin, end, [](std::byte b) { return b == static_cast<std::byte>(kRedZone); });
  };
  const std::byte* end = region.data + region.bytes;
  if (!intact(region.data - zone, region.data))
    throw InternalError(fmt::format("{} wrote before the start of '{}'", culprit, region.name));
  if (!intact(end, end + zone)) throw InternalError(fmt::format("{} wrote past the end of '{}'", culprit, region.name));
}

std::string MemoryChecker::describe(std::size_t node) const {
  const Section& section = plan_.program.sections[section_];
  return fmt::format("node {} of section {} ({})", node, name_of(section.kind), print(section, section.nodes[node]));
}

}  // namespace snug
