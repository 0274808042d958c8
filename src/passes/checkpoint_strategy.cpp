#include "passes/checkpoint_strategy.h"

#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "base/error.h"

namespace snug {

namespace {

using Kind = CheckpointStrategy::Kind;

constexpr std::array<std::pair<std::string_view, Kind>, 4> kPlain{
    {{"none", Kind::none}, {"no-bn", Kind::no_bn}, {"sqrt", Kind::sqrt}, {"log", Kind::log}}};
// With ":LIMIT" behind the name, or without.
constexpr std::array<std::pair<std::string_view, Kind>, 1> kLimited{{{"greedy", Kind::greedy}}};
constexpr std::string_view kEvery = "every-";
constexpr std::string_view kResidual = "residual-";

// M, or nothing when the text is no whole number from 1.
std::optional<std::int64_t> parse_count(std::string_view text) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1) return std::nullopt;
  return count;
}

}  // namespace

CheckpointStrategy parse_checkpoint_strategy(std::string_view text) {
  for (const auto& [name, kind] : kPlain) {
    if (text == name) return {.kind = kind};
  }
  for (const auto& [name, kind] : kLimited) {
    if (text == name) return {.kind = kind};
    if (text.starts_with(name) && text.substr(name.size()).starts_with(':')) {
      const Bytes limit = parse_bytes(text.substr(name.size() + 1));
      if (limit < Bytes(1)) throw_user_error("checkpoint is '{}'; a limit begins with 1 byte", text.substr(0, 100));
      return {.kind = kind, .limit = limit};
    }
  }
  std::optional<std::int64_t> count;
  Kind kind = Kind::every;
  if (text.starts_with(kEvery)) {
    count = parse_count(text.substr(kEvery.size()));
  } else if (text.starts_with(kResidual)) {
    const bool star = text.ends_with('*');
    kind = star ? Kind::residual_star : Kind::residual;
    const std::string_view number = text.substr(kResidual.size());
    count = parse_count(star ? number.substr(0, number.size() - 1) : number);
  }
  if (!count) {
    throw_user_error(
        "checkpoint is '{}'; it can be none, no-bn, sqrt, log, or with a whole number M from 1 every-M, residual-M, residual-M*, "
        "or "
        "greedy, with a limit as in greedy:6.7MB",
        text.substr(0, 100));
  }
  return {.kind = kind, .every = *count};
}

std::string to_string(const CheckpointStrategy& strategy) {
  switch (strategy.kind) {
    case Kind::every:
      return fmt::format("{}{}", kEvery, strategy.every);
    case Kind::residual:
      return fmt::format("{}{}", kResidual, strategy.every);
    case Kind::residual_star:
      return fmt::format("{}{}*", kResidual, strategy.every);
    default:
      break;
  }
  for (const auto& [name, kind] : kPlain) {
    if (kind == strategy.kind) return std::string(name);
  }
  for (const auto& [name, kind] : kLimited) {
    if (kind != strategy.kind) continue;
    return strategy.limit == Bytes(0) ? std::string(name) : fmt::format("{}:{}", name, strategy.limit.count());
  }
  return "?";
}

}  // namespace snug
