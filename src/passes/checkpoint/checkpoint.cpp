#include "passes/checkpoint/checkpoint.h"

#include "base/error.h"
#include "passes/checkpoint/greedy.h"
#include "passes/checkpoint/optimal.h"
#include "passes/checkpoint/recompute.h"
#include "passes/eliminate_dead_nodes.h"

namespace snug {

namespace {

using Kind = CheckpointStrategy::Kind;

bool drops_normalized(const CheckpointStrategy& strategy) {
  return strategy.kind == Kind::no_bn || strategy.kind == Kind::residual_star;
}

Recomputation choose(const Program& program, const Section& section, const ForwardPass& forward, const PassContext& context) {
  const CheckpointStrategy& strategy = *context.methods.checkpoint;
  if (strategy.kind == Kind::optimal) return find_optimal_recomputation(program, section, forward, context);
  return {.regions = find_regions(strategy, find_chain(section, forward).links, program.name),
          .renews = std::vector<bool>(forward.end, drops_normalized(strategy))};
}

}  // namespace

Program checkpoint(Program program, const PassContext& context) {
  SNUG_CHECK(context.methods.checkpoint, "there is no strategy to recompute by");
  if (context.methods.checkpoint->kind == Kind::none) return program;
  for (Section& section : program.sections) {
    if (section.kind != SectionKind::micro) continue;
    if (context.methods.checkpoint->kind == Kind::greedy) {
      drop_greedily(section, context);
      continue;
    }
    const ForwardPass forward = find_forward_pass(section);
    recompute(section, forward, choose(program, section, forward, context));
  }
  // What only backward read, such as sign bits, is now made by clones alone.
  return eliminate_dead_nodes(std::move(program), context);
}

}  // namespace snug
