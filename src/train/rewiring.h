// When the pattern of sparse weights moves, and what is known about it afterwards.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "train/session.h"

namespace snug::train {

// Steps count from 1: the first `every` applies up to and including the first milestone, the next up to the next. 0: never.
struct RewiringSchedule {
  std::vector<std::uint64_t> every = {};  // empty: never
  std::vector<std::uint64_t> milestones = {};
};

bool rewires_after(const RewiringSchedule& schedule, std::uint64_t step);

// The store's current state.
struct SparseReport {
  double threshold = 0;                                        // the next rewiring's
  std::int64_t pruned = 0;                                     // at the last one
  std::vector<std::pair<std::string, std::int64_t>> nonzeros;  // by the weights' names
};
// InternalError where the program has no sparse weights.
SparseReport describe_sparse(Session& session);

}  // namespace snug::train
