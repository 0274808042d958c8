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
  std::string_view source;  // the file, for sentences
  std::string_view model;
  std::string_view way_out = "";           // of another shape
  std::string_view way_out_of_names = "";  // of tensors that are missing or belong to no state
  // Which tensors of the file nobody wants and are skipped.
  std::function<bool(std::string_view name)> ignored = nullptr;
  // The file may have tensors that are not wanted.
  bool may_have_more = false;
  // The same, and it need not have all that are.
  bool partial = false;
};

// Which tensor of a file is which of the wanted.
struct TensorMatch {
  std::vector<const TensorInfo*> tensors;  // in the order of the wanted; nullptr: not in the file (only if partial)
  std::size_t unused = 0;                  // tensors of the file that are not wanted
};
// By name and shape. UserError about the first tensor that has another shape or, unless the rules allow it, is missing or not
// wanted, and how many more there are; it ends with the remedy.
TensorMatch match_tensors(std::span<const TensorInfo> wanted, const SafetensorsHeader& header, const MatchRules& rules);

}  // namespace snug::io
