// The strategy `optimal`: of all ways to recompute, the fastest within a limit on the section's bytes.
//
// The chain of links, measured with the backend's kernels (chain_measures.h), is solved by a dynamic program for every number of
// bytes (analysis/chain_program.h). Its figures are estimates, so its plans are then rewritten and their real liveness measured:
// the fastest whose bytes keep the limit is chosen, and single values that still have room are kept after all. Best effort: where
// nothing keeps the limit, the plan with the fewest bytes. Searches are limited by count.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "passes/checkpoint/recompute.h"
#include "passes/pass.h"

namespace snug {

struct LoweredChain;

// What was found for one model, backend and table of costs, for a search that asks about the same program with many limits. Its
// methods may be called from several threads.
class OptimalAnswers {
 public:
  // Microbatch size and workspace limit of a program.
  using Variant = std::pair<std::int64_t, std::optional<Bytes>>;

  std::shared_ptr<const LoweredChain> chain(const Variant& variant) const;
  void set_chain(const Variant& variant, std::shared_ptr<const LoweredChain> chain);
  std::optional<Recomputation> answer(const Variant& variant, Bytes limit) const;
  void set_answer(const Variant& variant, Bytes limit, const Recomputation& answer);

 private:
  mutable std::mutex mutex_;
  // The last few: a search finishes one microbatch size before the next, and a chain is as large as a program.
  std::deque<std::pair<Variant, std::shared_ptr<const LoweredChain>>> chains_;
  std::map<std::pair<Variant, Bytes>, Recomputation> answers_;
};

// context.methods.checkpoint->limit is for the transient bytes of `section`, one of the program's. Looks into
// context.optimal_answers first, if it is set.
Recomputation find_optimal_recomputation(const Program& program, const Section& section, const ForwardPass& forward,
                                         const PassContext& context);

}  // namespace snug
