#include "io/weights_tensors.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/printable.h"

namespace snug::io {

namespace {

std::optional<TensorDType> to_tensor_dtype(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return TensorDType::f64;
    case DType::f32:
      return TensorDType::f32;
    case DType::f16:
      return TensorDType::f16;
    case DType::bf16:
      return TensorDType::bf16;
    case DType::i32:
      return TensorDType::i32;
    case DType::u8:
      return TensorDType::u8;
    case DType::u4:
    case DType::bit:
      break;
  }
  return std::nullopt;
}

}  // namespace

std::string and_more(std::size_t count) { return count > 1 ? fmt::format(" and {} more", count - 1) : ""; }

std::optional<DType> to_dtype(TensorDType dtype) {
  for (const DType candidate : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i32, DType::u8}) {
    if (to_tensor_dtype(candidate) == dtype) return candidate;
  }
  return std::nullopt;
}

TensorInfo tensor_of(const State& state) {
  Type logical = state.type;
  logical.layout = Layout::row_major();
  TensorInfo tensor{.name = state.name, .bytes = static_cast<std::uint64_t>(logical.bytes().count())};
  if (const auto dtype = to_tensor_dtype(state.type.dtype)) {
    tensor.dtype = *dtype;
    tensor.shape.assign(state.type.shape.dims().begin(), state.type.shape.dims().end());
  } else {
    tensor.dtype = TensorDType::u8;
    tensor.shape = {logical.bytes().count()};
  }
  return tensor;
}

std::vector<StateId> states_of(const Program& program, std::span<const Role> roles) {
  std::vector<StateId> ids;
  for (std::size_t i = 0; i < program.states.size(); ++i) {
    if (std::find(roles.begin(), roles.end(), program.states[i].role) != roles.end()) ids.emplace_back(i);
  }
  const auto width = [&](StateId id) { return bits_per_element(program.state(id).type.dtype); };
  std::stable_sort(ids.begin(), ids.end(), [&](StateId a, StateId b) { return width(a) > width(b); });
  return ids;
}

TensorMatch match_tensors(std::span<const TensorInfo> wanted, const SafetensorsHeader& header, const MatchRules& rules) {
  std::unordered_map<std::string_view, const TensorInfo*> left;
  for (const TensorInfo& tensor : header.tensors) {
    if (rules.ignored == nullptr || !rules.ignored(tensor.name)) left.emplace(tensor.name, &tensor);
  }
  TensorMatch match;
  std::vector<std::string> missing;
  std::vector<std::string> misshaped;
  for (const TensorInfo& expected : wanted) {
    const auto found = left.find(expected.name);
    if (found == left.end()) {
      missing.push_back(expected.name);
      match.tensors.push_back(nullptr);
      continue;
    }
    if (found->second->shape != expected.shape) {
      misshaped.push_back(fmt::format("{} is [{}] instead of [{}]", in_quotes(expected.name),
                                      fmt::join(found->second->shape, ","), fmt::join(expected.shape, ",")));
    }
    match.tensors.push_back(found->second);
    left.erase(found);
  }
  match.unused = left.size();
  if (!missing.empty() && !rules.partial) {
    throw_user_error("{} has no tensor {}{} that the model '{}' needs{}", rules.source, in_quotes(missing.front()),
                     and_more(missing.size()), rules.model, rules.way_out_of_names);
  }
  if (!misshaped.empty()) {
    throw_user_error("{} does not go with the model '{}': {}{}{}", rules.source, rules.model, misshaped.front(),
                     and_more(misshaped.size()), rules.way_out);
  }
  if (!left.empty() && !rules.partial && !rules.may_have_more) {
    // The first in the file, not in the map.
    const auto extra = std::find_if(header.tensors.begin(), header.tensors.end(),
                                    [&](const TensorInfo& tensor) { return left.contains(tensor.name); });
    throw_user_error("{} has a tensor {}{} that the model '{}' does not know{}", rules.source, in_quotes(extra->name),
                     and_more(left.size()), rules.model, rules.way_out_of_names);
  }
  return match;
}

}  // namespace snug::io
