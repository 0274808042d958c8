#include "plan/allowance.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/nearest.h"

namespace snug {

namespace {

constexpr std::array<std::string_view, 6> kRungs{"exact", "reassociated", "microbatch", "precision", "compressed", "sparse"};

std::optional<Exactness> find_rung(std::string_view word) {
  const auto* const found = std::find(kRungs.begin(), kRungs.end(), word);
  if (found == kRungs.end()) return std::nullopt;
  return static_cast<Exactness>(found - kRungs.begin());
}

}  // namespace

std::span<const std::string_view> rung_names() { return kRungs; }

std::string_view name_of(Exactness rung) { return kRungs[static_cast<std::size_t>(rung)]; }

std::optional<std::string> objection_to_allowance(std::span<const std::string> rungs) {
  if (rungs.empty()) return fmt::format("must name at least one of {}", fmt::join(kRungs, ", "));
  for (const std::string& word : rungs) {
    const std::optional<Exactness> rung = find_rung(word);
    if (!rung)
      return fmt::format("is '{}'; it can be {}{}", word.substr(0, 100), fmt::join(kRungs, ", "), did_you_mean(word, kRungs));
  }
  return std::nullopt;
}

Allowance parse_allowance(std::span<const std::string> rungs) {
  if (const auto objection = objection_to_allowance(rungs)) throw_user_error("allow {}", *objection);
  const auto is_default = [](const std::string& word) { return find_rung(word).value() <= Exactness::microbatch; };
  Allowance allowance = std::any_of(rungs.begin(), rungs.end(), is_default) ? Allowance::exact_only() : Allowance();
  for (const std::string& word : rungs) allowance.add(find_rung(word).value());
  return allowance;
}

Allowance parse_allowance(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    words.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parse_allowance(words);
}

}  // namespace snug
