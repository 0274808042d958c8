#include "plan/compile.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "ir/verify.h"
#include "passes/add_update.h"
#include "passes/choose_recipes.h"
#include "passes/choose_weight_layouts.h"
#include "passes/fuse.h"
#include "passes/sparse_sections.h"
#include "placement/search.h"

namespace snug {

Plan compile(const Graph& model, const Backend& unlimited, const CompileOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<PassTiming> timings;
  // Forward, explicit backward, update, evaluation: one list of nodes each.
  Program program = lower_model(model, unlimited, options);
  // Every memory method is a rewrite of those lists.
  program = rewrite(std::move(program), unlimited, options, timings);
  // Byte offsets for every value, and with them the peak.
  Plan plan = place(std::move(program), options.red_zone);

  plan.pass_timings = std::move(timings);
  plan.plan_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return plan;
}

Program lower_model(const Graph& model, const Backend& backend, const CompileOptions& options) {
  // One node where two would read and write the same bytes; weights by their nonzeros if asked for, the others in the layout that
  // the backend's kernels want.
  const Graph graph = choose_weight_layouts(sparsify(fuse(model), options.sparse), backend);
  // Which values backward keeps: bits, argmax or the values themselves.
  const std::vector<int> recipes = choose_recipes(graph);
  // Forward and explicit backward; then what moves the parameters, and what sparse ones need.
  Program program = add_update(lower(graph, {.batch = options.batch, .recipes = recipes}), options.update);
  program = add_sparse_sections(std::move(program), graph.sparse);
  verify(program, "after differentiation");
  return program;
}

Program rewrite(Program program, const Backend& unlimited, const CompileOptions& options, std::vector<PassTiming>& timings) {
  Backend backend = unlimited;
  if (options.workspace_limit) backend.workspace_limit = options.workspace_limit;
  // Deep networks ask about the same few dozen nodes over and over.
  if (backend.answers == nullptr) backend.answers = std::make_shared<KernelAnswers>();
  PassContext context{
      .backend = backend, .checkpoint = options.checkpoint, .costs = options.costs, .optimal_answers = options.optimal_answers};
  PassOptions passes = options.passes;
  if (options.compress_bits > 0) {
    context.compress_bits = options.compress_bits;
    passes.enabled.emplace_back("compress_activations");
  }
  return run_passes(std::move(program), pipeline(), context, passes, timings);
}

namespace {

// UserError unless all sizes together, and with them every offset, can be counted. A program may come from a text file.
void check_sizes(const Program& program) {
  constexpr Bytes kMost(std::int64_t{1} << 60U);
  Bytes total;
  const auto count = [&](const Type& type) {
    total += type.bytes();  // below 2^52 each, so this cannot overflow before it is found too large
    if (total > kMost) throw_user_error("the values of '{}' together take more than 2^60 bytes", program.name);
  };
  for (const State& state : program.states) count(state.type);
  for (const Section& section : program.sections) {
    for (const Value& value : section.values) count(value.type);
  }
}

// The states, one above the other at the bottom of the arena.
struct PersistentRegion {
  std::vector<Bytes> offsets;
  Bytes end;   // of the last state
  Bytes size;  // transient values start here
};

PersistentRegion persistent_region(const Program& program, Bytes red_zone) {
  PersistentRegion region;
  for (const State& state : program.states) {
    SNUG_CHECK(state.space == MemorySpace::device, "states in host memory are not planned yet");
    region.size += red_zone;
    region.offsets.push_back(region.size);
    region.end = region.size + state.type.bytes() + red_zone;
    region.size = round_up(region.end, kAlignment);
  }
  return region;
}

}  // namespace

Bytes arena_bound(const Program& program, Bytes red_zone) {
  check_sizes(program);
  const PersistentRegion persistent = persistent_region(program, red_zone);
  Bytes bound = persistent.end;
  for (const Section& section : program.sections) {
    const Liveness alive = liveness(section);
    if (alive.buffers.empty()) continue;
    bound = std::max(bound, persistent.size + placement::lower_bound(placement_problem(alive, red_zone)));
  }
  return bound;
}

Plan place(Program program, Bytes red_zone) {
  SNUG_CHECK(red_zone.count() % kAlignment.count() == 0, "a red zone of {} bytes would break the alignment", red_zone.count());
  check_sizes(program);
  Plan plan;
  plan.program = std::move(program);
  plan.red_zone = red_zone;

  PersistentRegion persistent = persistent_region(plan.program, red_zone);
  plan.state_offsets = std::move(persistent.offsets);
  plan.persistent_bytes = persistent.size;
  plan.planned_peak_bytes = persistent.end;
  plan.bound_bytes = persistent.end;

  for (const Section& section : plan.program.sections) {
    SectionPlan placed{.liveness = liveness(section), .offsets = {}, .height = {}, .bound = {}, .method = "nothing to place"};
    if (!placed.liveness.buffers.empty()) {
      placement::Result result = placement::place(placement_problem(placed.liveness, red_zone));
      placed.height = result.placement.height;
      placed.bound = result.bound;
      placed.method = std::move(result.method);
      for (const Bytes offset : result.placement.offsets) placed.offsets.push_back(plan.persistent_bytes + offset + red_zone);
      plan.planned_peak_bytes = std::max(plan.planned_peak_bytes, plan.persistent_bytes + placed.height);
      plan.bound_bytes = std::max(plan.bound_bytes, plan.persistent_bytes + placed.bound);
    }
    plan.sections.push_back(std::move(placed));
  }
  const auto violation = find_violation(plan);
  SNUG_CHECK(!violation, "the plan of '{}' is not valid: {}", plan.program.name, violation.value_or(""));
  return plan;
}

}  // namespace snug
