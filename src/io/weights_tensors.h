// A session's states as tensors of a file: what snapshots and weight files have in common.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors.h"
#include "ir/program.h"

namespace snug::io {

std::optional<DType> to_dtype(TensorDType dtype);

// The state in logical order. Elements narrower than a byte are stored as the bytes they are packed in.
TensorInfo tensor_of(const State& state);

// The states of the given roles, widest elements first, so that every tensor of a file lies on a multiple of its element's size.
std::vector<StateId> states_of(const Program& program, std::span<const Role> roles);

// " and 2 more" after the first of 3, nothing after the only one.
std::string and_more(std::size_t count);

struct MatchRules {
  std::string_view source;                 // the file, for sentences
  std::string_view way_out = "";           // of another shape
  std::string_view way_out_of_names = "";  // of tensors that are missing or belong to no state
  // Which tensors of the file belong to no state and are skipped.
  std::function<bool(std::string_view name)> ignored = nullptr;
  // The file may have tensors that belong to no state.
  bool may_have_more = false;
  // The same, and it need not have every state.
  bool partial = false;
};

// Which tensor of a file belongs to which state.
struct TensorMatch {
  std::vector<const TensorInfo*> tensors;  // of the wanted states, in order; nullptr: not in the file (only if partial)
  std::size_t unused = 0;                  // tensors of the file that belong to no state
};
// UserError about the first tensor that has another shape or, unless the rules allow it, is missing or belongs to no state, and
// how many more there are; it ends with the remedy.
TensorMatch match_tensors(const Program& program, std::span<const StateId> wanted, const SafetensorsHeader& header,
                          const MatchRules& rules);

}  // namespace snug::io
