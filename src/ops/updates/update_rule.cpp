#include "ops/updates/update_rule.h"

#include <array>

#include "base/error.h"

namespace snug::ops {

namespace {

constexpr std::array kRules{&sgd_rule, &adamw_rule};

bool matches_pattern(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern.front() != '*')
    return !name.empty() && name.front() == pattern.front() && matches_pattern(pattern.substr(1), name.substr(1));
  for (std::size_t skipped = 0; skipped <= name.size(); ++skipped) {
    if (matches_pattern(pattern.substr(1), name.substr(skipped))) return true;
  }
  return false;
}

}  // namespace

const UpdateRule& find_update_rule(std::string_view name) {
  std::string known;
  for (const UpdateRule* rule : kRules) {
    if (rule->name == name) return *rule;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", rule->name);
  }
  throw_user_error("there is no update rule '{}'; the rules are {}", name, known);
}

bool matches(const ParameterGroup& group, std::string_view name) { return matches_pattern(group.pattern, name); }

}  // namespace snug::ops
