// The mean of the weights of several snapshots, which often generalizes better than the last of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "train/session.h"

namespace snug::train {

// Gives the session, which has the weights of one of these snapshots (load_snapshot), the mean of all: parameters and running
// statistics, summed in double in the order of the files and rounded once to their own types. That of one snapshot is the
// snapshot's, bit for bit. Optimizer state and counters stay. Memory does not grow with the number of files, of which one is open
// at a time.
//
// The steps after which they were made, in the order of the files.
//
// UserError, before anything changes, when a file is damaged, lacks a state or has it in another shape or type, or when several
// hold sparse weights: each has another pattern, and the mean would have none.
std::vector<std::uint64_t> average_snapshots(std::span<const std::filesystem::path> snapshots, Session& session);

}  // namespace snug::train
