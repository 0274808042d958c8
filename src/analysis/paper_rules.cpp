#include "analysis/paper_rules.h"

#include <algorithm>

namespace snug::paper {

namespace {

// Whether the op's input is recomputed for it alone, rather than kept.
bool renews_input(const Network& network, bool renews, const Op& op) {
  if (!renews || op.inputs.empty()) return false;
  const Op* producer = network.producer_of(op.inputs.front());
  return producer != nullptr && producer->renewable;
}

}  // namespace

std::optional<ValueId> kept_value(const Network& network, bool renews, const ValueSet& boundaries, const Op& op) {
  if (op.keeps != Keeps::input || renews_input(network, renews, op) || boundaries.contains(op.inputs.front())) return {};
  return op.inputs.front();
}

Amount kept_by(const Network& network, bool renews, const ValueSet& boundaries, const Op& op) {
  if (op.keeps == Keeps::bits && !(renews && op.renewable)) return {.bits = network.elements_of(op.output)};
  if (op.keeps == Keeps::mask) return {.values = network.elements_of(op.output)};
  const std::optional<ValueId> value = kept_value(network, renews, boundaries, op);
  return {.values = value ? network.elements_of(*value) : 0};
}

Amount renewed_for(const Network& network, bool renews, const ValueSet& boundaries, const Op& op) {
  if (!renews) return {};
  if (op.keeps == Keeps::bits && op.renewable) return {.bits = network.elements_of(op.output)};
  if (op.keeps != Keeps::input || !renews_input(network, renews, op) || boundaries.contains(op.inputs.front())) return {};
  const std::int64_t elements = network.elements_of(op.inputs.front());
  return {.values = elements, .bits = network.producer_of(op.inputs.front())->is_relu ? elements : 0};
}

std::int64_t flops_to_make(const Network& network, bool renews, std::size_t begin, std::size_t end, std::size_t counted_end,
                           const std::vector<ValueId>& wanted) {
  std::vector<bool> needed(end - begin, false);
  const auto need = [&](ValueId value) {
    const std::size_t producer = network.producers[value.index()];
    if (producer != Network::kNoOp && producer >= begin && producer < end) needed[producer - begin] = true;
  };
  for (const ValueId value : wanted) need(value);
  std::int64_t flops = 0;
  for (std::size_t at = end; at-- > begin;) {
    if (!needed[at - begin]) continue;
    const Op& op = network.ops[at];
    for (const ValueId input : op.inputs) need(input);
    if (!(renews && op.renewable) && at < counted_end) flops += op.again_flops;
  }
  return flops;
}

std::int64_t flops_to_renew(const Network& network, std::size_t begin, std::size_t end) {
  std::int64_t flops = 0;
  for (std::size_t at = begin; at < end; ++at) {
    const Op& op = network.ops[at];
    if (!op.renewable || !op.in_backward) continue;
    const std::vector<std::size_t>& readers = network.consumers_of(op.output);
    const bool is_read = std::any_of(readers.begin(), readers.end(), [&](std::size_t reader) {
      return network.ops[reader].keeps == Keeps::input || (network.ops[reader].is_relu && network.ops[reader].renewable);
    });
    if (op.is_relu || is_read) flops += op.again_flops;
  }
  return flops;
}

}  // namespace snug::paper
