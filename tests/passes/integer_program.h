// The exact reference for checkpointing: Checkmate's integer program (Jain et al., "Checkmate: Breaking the memory wall with
// optimal tensor rematerialization"), solved by CBC. For small graphs.
//
// The model. Forward nodes run once, in order; then come the stages of backward, each with one step that reads forward values. In
// a stage any forward nodes may run again, in order, before the step. While a node or a step runs, memory holds what it reads,
// what it makes, and everything that is held for later; a value goes when nothing of the stage reads it any more and the next
// stage does not want it held. Bytes of gradients are given, by stage. The sum of the costs of what runs again is least.
// Checkmate has a stage for every node of the graph; here the forward pass is one stage, because running a forward node again
// before backward has begun never pays.
#pragma once

#include <optional>
#include <vector>

namespace snug::testing {

struct ForwardNode {
  double cost = 0;
  double bytes = 0;  // of the value it makes
  std::vector<std::size_t> reads;
  bool may_run_again = true;
};

struct BackwardStage {
  std::vector<std::size_t> reads;  // forward values
  double bytes_before = 0;         // of gradients, while forward nodes run again for it
  double bytes = 0;                // of gradients, with what its step makes
  double bytes_after = 0;          // most of gradients in what follows up to the next stage; that reads no forward value
};

struct RecomputationProblem {
  std::vector<ForwardNode> forward;
  std::vector<BackwardStage> backward;
};

// The least cost of recomputation within so many bytes; nothing when there is no way at a cost of at most `known_cost`, that of a
// way that is known, from which the search is much shorter. Costs are whole numbers. Throws std::runtime_error when CBC is not
// there (scripts/setup.sh installs it) or gives no answer.
std::optional<double> least_recomputation(const RecomputationProblem& problem, double bytes, double known_cost);

}  // namespace snug::testing
