#include "analysis/paper_accounting.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analysis/paper_network.h"
#include "analysis/paper_optimal.h"
#include "analysis/paper_rules.h"
#include "base/error.h"
#include "ir/op.h"
#include "ops/ops.h"

namespace snug::paper {

namespace {

constexpr std::int64_t kNormBytes = 4;  // parameters and statistics of normalization are never stored in less

// Ops [begin, end) of which backward has everything that it needs in memory at once.
struct Scope {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool is_checkpoint = false;     // its inputs are kept from the forward pass on, not recomputed
  std::vector<ValueId> boundary;  // the values it begins with
};

// A strategy applied to a network.
struct Scheme {
  std::vector<Scope> scopes;
  bool renews = false;         // normalizations and the ReLUs after them
  std::size_t last_again = 0;  // ops from here on run only once, except for what is renewed: backward begins with them
};

std::vector<Scope> scopes_from(const Network& network, std::vector<std::pair<std::size_t, bool>> begins) {
  std::sort(begins.begin(), begins.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;  // a checkpoint wins over an inner boundary
  });
  std::vector<Scope> scopes;
  for (const auto& [begin, is_checkpoint] : begins) {
    if (!scopes.empty() && scopes.back().begin == begin) continue;
    if (!scopes.empty()) scopes.back().end = begin;
    scopes.push_back(
        {.begin = begin, .end = network.ops.size(), .is_checkpoint = is_checkpoint, .boundary = crossing_values(network, begin)});
  }
  return scopes;
}

Scheme every_scheme(const Network& network, std::int64_t m) {
  std::vector<std::pair<std::size_t, bool>> begins{{0, true}};
  std::vector<std::size_t> keeping;
  for (std::size_t at = 0; at < network.ops.size(); ++at) {
    if (network.ops[at].keeps != Keeps::nothing) keeping.push_back(at);
  }
  const auto step = static_cast<std::size_t>(m);
  for (std::size_t i = step; i < keeping.size(); i += step) begins.emplace_back(keeping[i - 1], true);
  return {.scopes = scopes_from(network, std::move(begins)), .last_again = network.ops.size()};
}

Scheme residual_scheme(const Program& model, const Network& network, const Strategy& strategy) {
  const std::vector<Unit> units = residual_units(network);
  if (units.empty()) {
    throw_user_error("'{}' has no residual units, so '{}' is not possible; use none, no-bn or every-M", model.name,
                     name_of(strategy));
  }
  const bool star = strategy.kind == Strategy::Kind::residual_star;
  std::vector<std::pair<std::size_t, bool>> begins{{0, true}};
  for (std::size_t i = 0; i < units.size(); ++i) {
    const bool is_checkpoint = static_cast<std::int64_t>(i + 1) % strategy.m == 0;
    if (star) begins.emplace_back(units[i].begin, false);
    if (star || is_checkpoint) begins.emplace_back(units[i].end, is_checkpoint);
  }
  return {.scopes = scopes_from(network, std::move(begins)), .renews = star, .last_again = units.back().end};
}

Scheme scheme_of(const Program& model, const Network& network, const Strategy& strategy) {
  switch (strategy.kind) {
    case Strategy::Kind::none:
    case Strategy::Kind::no_bn:
    case Strategy::Kind::optimal:  // counted elsewhere, since it may nest
      break;
    case Strategy::Kind::every:
      return every_scheme(network, strategy.m);
    case Strategy::Kind::residual:
    case Strategy::Kind::residual_star:
      return residual_scheme(model, network, strategy);
  }
  // One scope, kept from the forward pass: nothing is recomputed for it.
  return {.scopes = {{.begin = 0, .end = network.ops.size(), .is_checkpoint = true, .boundary = {}}},
          .renews = strategy.kind == Strategy::Kind::no_bn,
          .last_again = 0};
}

// What is in memory before a scope is recomputed: all checkpoints up to it, and the inner boundaries of its own segment.
ValueSet boundaries_before(const Scheme& scheme, std::size_t scope) {
  ValueSet values;
  bool same_segment = true;
  for (std::size_t s = scope + 1; s-- > 0;) {
    const Scope& at = scheme.scopes[s];
    if (at.is_checkpoint || same_segment) values.insert(at.boundary.begin(), at.boundary.end());
    if (at.is_checkpoint) same_segment = false;
  }
  return values;
}

ActivationBytes activation_bytes(const Program& model, const Network& network, const Scheme& scheme, const Options& options) {
  ActivationBytes fullest;
  for (std::size_t s = 0; s < scheme.scopes.size(); ++s) {
    const Scope& scope = scheme.scopes[s];
    const ValueSet boundaries = boundaries_before(scheme, s);
    Amount kept;
    for (const ValueId value : boundaries) kept.values += network.elements_of(value);
    for (std::size_t at = scope.begin; at < scope.end; ++at) {
      const Op& op = network.ops[at];
      if (!op.in_backward || op.passes_gradient) continue;  // the paper leaves out sums and reshapes
      const Amount more = kept_by(network, scheme.renews, boundaries, op);
      kept.values += more.values;
      kept.bits += more.bits;
      ActivationBytes now{.kept = kept.bytes(options.value_bytes),
                          .renewed = renewed_for(network, scheme.renews, boundaries, op).bytes(options.value_bytes),
                          .gradients = Amount{.values = op.gradient_values}.bytes(options.value_bytes),
                          .layer = model.section(SectionKind::forward).nodes[op.node].layer};
      // Of equals the last, which backward reaches first.
      if (now.total() >= fullest.total()) fullest = std::move(now);
    }
  }
  return fullest;
}

FlopCount flops_of(const Network& network, const Scheme& scheme) {
  FlopCount flops;
  for (const Op& op : network.ops) {
    flops.forward += op.forward_flops;
    flops.backward += op.backward_flops;
  }
  // Ops from `last_again` on have no second run.
  const auto flops_to_make_in = [&](const Scope& scope, const std::vector<ValueId>& wanted) {
    return flops_to_make(network, scheme.renews, scope.begin, scope.end, std::min(scope.end, scheme.last_again), wanted);
  };
  if (scheme.renews) flops.recompute += flops_to_renew(network, 0, network.ops.size());
  for (std::size_t s = 0; s < scheme.scopes.size(); ++s) {
    const Scope& scope = scheme.scopes[s];
    const bool leads_on = s + 1 < scheme.scopes.size() && !scheme.scopes[s + 1].is_checkpoint;
    // First the segment's inner boundaries, then, when backward reaches the scope, what it keeps.
    if (leads_on) flops.recompute += flops_to_make_in(scope, scheme.scopes[s + 1].boundary);
    const ValueSet boundaries = boundaries_before(scheme, s);
    std::vector<ValueId> wanted;
    for (std::size_t at = scope.begin; at < scope.end; ++at) {
      const Op& op = network.ops[at];
      if (op.keeps == Keeps::bits) wanted.push_back(op.output);
      if (const auto value = kept_value(network, scheme.renews, boundaries, op)) wanted.push_back(*value);
    }
    flops.recompute += flops_to_make_in(scope, wanted);
  }
  return flops;
}

// Bits of an index into `count` things.
std::int64_t index_bits(std::int64_t count) { return std::bit_width(static_cast<std::uint64_t>(count - 1)); }

struct StateRoles {
  std::unordered_set<StateId> normalization;  // parameters of it
  std::unordered_set<StateId> sparse;         // weights of convolutions that do not read the network's input
};

StateRoles roles_of(const Program& model, const Network& network) {
  StateRoles roles;
  for (const Op& op : network.ops) {
    const Node& node = model.section(SectionKind::forward).nodes[op.node];
    if (node.op == &ops::conv2d && network.producer_of(op.inputs.front()) != nullptr) {
      roles.sparse.insert(model.section(SectionKind::forward).value(node.inputs[1]).state);
    }
    if (node.op != &ops::batch_norm_apply && node.op != &ops::group_norm) continue;
    for (const ValueId input : node.inputs) {
      const Value& value = model.section(SectionKind::forward).value(input);
      if (value.is_state() && model.states[value.state.index()].role == Role::parameter) roles.normalization.insert(value.state);
    }
  }
  return roles;
}

StateBytes state_bytes(const Program& model, const Network& network, const Options& options) {
  const StateRoles roles = roles_of(model, network);
  // Nonzeros are a share, so bytes may be fractional; up to 2^53 bytes are exact.
  double weights = 0;
  double trained = 0;
  double index = 0;
  for (std::size_t s = 0; s < model.states.size(); ++s) {
    const State& state = model.states[s];
    const StateId id(s);
    const auto elements = static_cast<double>(state.type.elements());
    if (state.role == Role::statistic) {  // in the paper's figures running statistics have all three copies
      weights += kNormBytes * elements;
      trained += kNormBytes * elements;
    }
    if (state.role != Role::parameter) continue;
    double bytes = elements * static_cast<double>(roles.normalization.contains(id) ? kNormBytes : options.value_bytes);
    if (options.nonzero < 1 && roles.sparse.contains(id)) {
      const Shape& shape = state.type.shape;
      const std::int64_t columns = state.type.elements() / shape[0];
      bytes *= options.nonzero;
      index += options.nonzero * elements * static_cast<double>(index_bits(columns)) / 8;
      index += static_cast<double>((shape[0] + 1) * index_bits(state.type.elements())) / 8;
    }
    weights += bytes;
    if (state.trainable) trained += bytes;
  }
  const auto whole = [](double bytes) { return Bytes(static_cast<std::int64_t>(std::llround(bytes))); };
  return {.model = whole(weights + index), .gradient = whole(trained), .momentum = whole(trained)};
}

void check(const Options& options) {
  if (options.value_bytes != 4 && options.value_bytes != 2) {
    throw_user_error("values of {} bytes are not in the paper; use 4 or 2", options.value_bytes);
  }
  if (!(options.nonzero > 0 && options.nonzero <= 1)) {
    throw_user_error("a share of {} nonzero weights is not possible; use more than 0 and at most 1", options.nonzero);
  }
}

}  // namespace

Strategy parse_strategy(std::string_view name) {
  if (name == "none") return {.kind = Strategy::Kind::none};
  if (name == "no-bn") return {.kind = Strategy::Kind::no_bn};
  if (name.starts_with("optimal:")) {
    const Bytes limit = parse_bytes(name.substr(name.find(':') + 1));
    if (limit > Bytes(0)) return {.kind = Strategy::Kind::optimal, .limit = limit};
  }
  const std::string_view whole = name;
  const bool star = name.ends_with('*');
  if (star) name.remove_suffix(1);
  const std::array<std::pair<std::string_view, Strategy::Kind>, 2> series{
      {{"every-", Strategy::Kind::every}, {"residual-", star ? Strategy::Kind::residual_star : Strategy::Kind::residual}}};
  for (const auto& [prefix, kind] : series) {
    if (!name.starts_with(prefix) || (star && kind == Strategy::Kind::every)) continue;
    const std::string_view digits = name.substr(prefix.size());
    std::int64_t m = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), m);
    if (error == std::errc() && end == digits.data() + digits.size() && m >= 1) return {.kind = kind, .m = m};
  }
  throw_user_error(
      "the paper has no checkpoint strategy '{}'; use none, no-bn, every-M, residual-M or residual-M*, as in residual-2*, or "
      "optimal:BYTES, as in optimal:30MB",
      whole);
}

std::string name_of(const Strategy& strategy) {
  switch (strategy.kind) {
    case Strategy::Kind::none:
      return "none";
    case Strategy::Kind::no_bn:
      return "no-bn";
    case Strategy::Kind::every:
      return fmt::format("every-{}", strategy.m);
    case Strategy::Kind::residual:
      return fmt::format("residual-{}", strategy.m);
    case Strategy::Kind::residual_star:
      return fmt::format("residual-{}*", strategy.m);
    case Strategy::Kind::optimal:
      return fmt::format("optimal:{}", strategy.limit.count());
  }
  return "?";
}

double FlopCount::ratio() const {
  const std::int64_t once = forward + backward;
  return once == 0 ? 1.0 : 1.0 + static_cast<double>(recompute) / static_cast<double>(once);
}

StateBytes state_bytes(const Program& model, const Options& options) {
  check(options);
  return state_bytes(model, network_of(model), options);
}

Accounting account(const Program& model, const Strategy& strategy, const Options& options) {
  check(options);
  const Network network = network_of(model);
  if (strategy.kind == Strategy::Kind::optimal) {
    OptimalAccounting optimal = account_optimal(model, network, strategy.limit, options);
    return {.strategy = strategy,
            .states = state_bytes(model, network, options),
            .activations = std::move(optimal.activations),
            .flops = optimal.flops};
  }
  const Scheme scheme = scheme_of(model, network, strategy);
  return {.strategy = strategy,
          .states = state_bytes(model, network, options),
          .activations = activation_bytes(model, network, scheme, options),
          .flops = flops_of(network, scheme)};
}

bool has_residual_units(const Program& model) { return !residual_units(network_of(model)).empty(); }

}  // namespace snug::paper
