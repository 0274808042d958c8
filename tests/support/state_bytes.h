// All bits of a session's states after training, for comparing sessions.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "train/session.h"

namespace snug::support {

// Of the states whose role is wanted, in the program's order and each in logical order. `wanted`: bool(Role).
template <typename Wanted>
std::vector<std::byte> state_bytes(const train::Session& session, Wanted wanted) {
  std::vector<std::byte> bytes;
  const Program& program = session.plan().program;
  for (std::size_t i = 0; i < program.states.size(); ++i) {
    if (!wanted(program.states[i].role)) continue;
    const std::size_t before = bytes.size();
    bytes.resize(before + session.logical_bytes(StateId(i)));
    session.read_logical(StateId(i), std::span(bytes).subspan(before));
  }
  return bytes;
}

// Of all states except those staged for each step.
inline std::vector<std::byte> state_bytes(const train::Session& session) {
  return state_bytes(session, [](Role role) { return role != Role::input && role != Role::scalar; });
}

}  // namespace snug::support
