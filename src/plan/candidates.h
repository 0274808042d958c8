// Programs that a search compares before any is placed.
#pragma once

#include <vector>

#include "plan/frontier.h"

namespace snug {

// What a program without placement says about a candidate.
struct Candidate {
  FrontierPoint point;      // its bytes are what liveness demands
  Bytes largest_workspace;  // of one kernel in a step
  Bytes micro_bytes;        // peak of forward and backward, without states
};

// By seconds, then by bytes.
void sort_by_time(std::vector<Candidate>& candidates);

// Those that no other beats by bytes (a lower bound) and time, fastest first.
std::vector<Candidate> on_frontier(std::vector<Candidate> candidates);

// Those that are placed, fastest first: all of them, or, where more than `most` are on the frontier, some that are spread about
// evenly over the range of bytes, the smallest included. Chosen by lower bounds alone, so that the choice does not depend on a
// budget.
std::vector<Candidate> worth_placing(const std::vector<Candidate>& sorted, std::int64_t most);

}  // namespace snug
