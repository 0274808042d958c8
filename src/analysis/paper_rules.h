// What an op keeps, what is recomputed for it and at what cost, by the rules of docs/accounting.md.
#pragma once

#include <optional>
#include <unordered_set>
#include <vector>

#include "analysis/paper_network.h"
#include "base/bytes.h"

namespace snug::paper {

// An amount of memory, before the bytes per value are known.
struct Amount {
  std::int64_t values = 0;
  std::int64_t bits = 0;

  Bytes bytes(std::int64_t value_bytes) const { return Bytes(values * value_bytes + (bits + 7) / 8); }
  Amount& operator+=(const Amount& other) {
    values += other.values;
    bits += other.bits;
    return *this;
  }
};

using ValueSet = std::unordered_set<ValueId>;

// `renews`: normalizations and the ReLUs after them are recomputed for the op that reads them. `boundaries`: values that are held
// anyway.

// The value that the op keeps; none for bits and masks, and none where a boundary keeps it already.
std::optional<ValueId> kept_value(const Network& network, bool renews, const ValueSet& boundaries, const Op& op);
Amount kept_by(const Network& network, bool renews, const ValueSet& boundaries, const Op& op);
// What is recomputed while the op is differentiated.
Amount renewed_for(const Network& network, bool renews, const ValueSet& boundaries, const Op& op);

// FLOPs of the ops [begin, counted_end) that the wanted values depend on within [begin, end); renewed ones are counted by
// flops_to_renew.
std::int64_t flops_to_make(const Network& network, bool renews, std::size_t begin, std::size_t end, std::size_t counted_end,
                           const std::vector<ValueId>& wanted);
// Each normalization and ReLU of ops [begin, end) counts once, however often a strategy recomputes it: this matches the paper's
// figures.
std::int64_t flops_to_renew(const Network& network, std::size_t begin, std::size_t end);

}  // namespace snug::paper
