#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "frontend/graph_builder.h"

namespace snug::frontend {

namespace {

// Up to three names of parameters that were perhaps meant, nearest first.
std::string nearest_names(const Program& model, std::string_view prefix) {
  std::vector<std::pair<std::size_t, std::string_view>> names;
  for (const State& state : model.states) {
    if (state.role == Role::parameter) names.emplace_back(edits_to_begin_with(prefix, state.name), state.name);
  }
  std::stable_sort(names.begin(), names.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, names.size()); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", names[i].second);
  return text;
}

}  // namespace

void freeze(Program& model, const std::vector<std::string>& prefixes) {
  for (const std::string& prefix : prefixes) {
    bool found = false;
    for (State& state : model.states) {
      if (state.role != Role::parameter || !state.name.starts_with(prefix)) continue;
      state.trainable = false;
      found = true;
    }
    if (found) continue;
    const std::string nearest = nearest_names(model, prefix);
    if (nearest.empty()) throw_user_error("'{}' has no parameters, so nothing can be frozen", model.name);
    throw_user_error("no parameter's name begins with '{}', so nothing can be frozen; the nearest names are {}", prefix, nearest);
  }
}

}  // namespace snug::frontend
