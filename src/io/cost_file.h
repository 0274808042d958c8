// Measured node times in a file, so that a machine is measured once: JSON with a key that says what the times depend on.
//
//   {"format": 1, "backend": "cpu", "machine": "AMD EPYC 9R14, avx512_core_bf16, oneDNN 2.6.3", "threads": 2,
//    "nodes": [{"key": "add f32[8] f32[8] -> f32[8]", "family": "add f32[*] ...", "kernel": "simd_add",
//               "flops": 8, "bytes": 96, "seconds": 1.2e-06}, ...]}
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/cost.h"
#include "ir/kernel.h"

namespace snug::io {

// Times measured under one key say nothing about another.
struct CostKey {
  std::string backend;
  std::string machine;
  int threads = 1;

  friend bool operator==(const CostKey&, const CostKey&) = default;
};
CostKey cost_key_of(const Backend& backend);

// $XDG_CACHE_HOME/snug or ~/.cache/snug, a file for each backend and number of threads. Nothing where there is no home.
std::optional<std::filesystem::path> default_cost_file(const CostKey& key);

// UserError with one sentence when the file is not there, no whole cost file, or one of another key.
std::vector<NodeCost> read_cost_file(const std::filesystem::path& path, const CostKey& key);
// The same of a text; `source` names it in messages.
std::vector<NodeCost> parse_costs(std::string_view text, const CostKey& key, std::string_view source);

// Makes the folder where it is missing. A reader finds the old file or the whole new one.
void write_cost_file(const std::filesystem::path& path, const CostKey& key, std::span<const NodeCost> nodes);

// What was measured before, with what was measured now in its place or behind it.
void merge_costs(std::vector<NodeCost>& known, std::span<const NodeCost> measured);

}  // namespace snug::io
