#include "passes/checkpoint/strategy.h"

#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/nearest.h"

namespace snug {

namespace {

using Kind = CheckpointStrategy::Kind;

constexpr std::array<std::pair<std::string_view, Kind>, 7> kPlain{{{"none", Kind::none},
                                                                   {"no-bn", Kind::no_bn},
                                                                   {"sqrt", Kind::sqrt},
                                                                   {"log", Kind::log},
                                                                   {"chen", Kind::chen},
                                                                   {"optimal", Kind::optimal},
                                                                   {"greedy", Kind::greedy}}};
// Kinds that may be given a limit, as in optimal:6.7MB.
constexpr std::array<Kind, 2> kLimited{Kind::optimal, Kind::greedy};
constexpr std::string_view kEvery = "every-";
constexpr std::string_view kResidual = "residual-";

constexpr std::array<std::string_view, 10> kNames{"none",    "no-bn",  "sqrt",    "log",        "chen",
                                                  "optimal", "greedy", "every-2", "residual-2", "residual-2*"};

// M, or nothing when the text is not a whole number of at least 1.
std::optional<std::int64_t> parse_count(std::string_view text) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1) return std::nullopt;
  return count;
}

Bytes parse_limit(std::string_view text, std::size_t colon) {
  const Bytes limit = parse_bytes(text.substr(colon + 1));
  if (limit == Bytes(0)) throw_user_error("checkpoint is '{}'; give it a limit of at least 1 byte, or none at all", text);
  return limit;
}

}  // namespace

std::span<const std::string_view> checkpoint_names() { return kNames; }

CheckpointStrategy parse_checkpoint_strategy(std::string_view text) {
  for (const auto& [name, kind] : kPlain) {
    if (text == name) return {.kind = kind};
  }
  if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    for (const Kind kind : kLimited) {
      if (text.substr(0, colon) == to_string({.kind = kind})) return {.kind = kind, .limit = parse_limit(text, colon)};
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
        "checkpoint is '{}'; it can be none, no-bn, sqrt, log, chen, optimal or greedy (the last two also with a limit, as in "
        "optimal:6.7MB), or every-M, residual-M or residual-M* with a whole number M from 1{}",
        text.substr(0, 100), did_you_mean(text, kNames));
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
    if (kind != strategy.kind) continue;
    return strategy.limit == Bytes(0) ? std::string(name) : fmt::format("{}:{}", name, strategy.limit.count());
  }
  return "?";
}

}  // namespace snug
