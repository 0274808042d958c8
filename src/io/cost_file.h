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

// Times measured under one key do not apply to another.
struct CostKey {
  std::string backend;
  std::string machine;
  int threads = 1;

  friend bool operator==(const CostKey&, const CostKey&) = default;
};
CostKey cost_key_of(const Backend& backend);

// $XDG_CACHE_HOME/snug or ~/.cache/snug, one file per backend and number of threads. Nothing where there is no home folder.
std::optional<std::filesystem::path> default_cost_file(const CostKey& key);

// UserError with one sentence when the file does not exist, is not a complete cost file, or has another key.
std::vector<NodeCost> read_cost_file(const std::filesystem::path& path, const CostKey& key);
// The same from a text; `source` names it in messages.
std::vector<NodeCost> parse_costs(std::string_view text, const CostKey& key, std::string_view source);

// Makes the folder if it is missing. A reader finds the old file or the complete new one.
void write_cost_file(const std::filesystem::path& path, const CostKey& key, std::span<const NodeCost> nodes);

// Updates the known costs with the measured ones: replaces those of the same nodes, appends the others.
void merge_costs(std::vector<NodeCost>& known, std::span<const NodeCost> measured);

}  // namespace snug::io
