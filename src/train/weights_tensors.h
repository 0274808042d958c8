// A session's states as tensors of a file: what snapshots and weight files have in common.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"
#include "train/safetensors.h"

namespace snug::train {

std::optional<DType> to_dtype(TensorDType dtype);

// The state in logical order. Elements narrower than a byte go as the bytes they are packed in.
TensorInfo tensor_of(const State& state);

// The states of the given roles, widest elements first, so that every tensor of a file lies on a multiple of its element's size.
std::vector<StateId> states_of(const Program& program, std::span<const Role> roles);

// Which tensor of a file belongs to which state: `wanted` in order.
struct TensorMatch {
  std::vector<const TensorInfo*> tensors;
};
// UserError, naming `source`, the first tensor that is missing, has another shape or belongs to no state, and how many more there
// are; it ends with `way_out`. `ignored` says which tensors of the file may be left over.
TensorMatch match_tensors(const Program& program, std::span<const StateId> wanted, const SafetensorsHeader& header,
                          const std::function<bool(std::string_view name)>& ignored, std::string_view source,
                          std::string_view way_out = "");

}  // namespace snug::train
