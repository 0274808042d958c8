#include "plan/compile.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "passes/choose_recipes.h"
#include "passes/choose_weight_layouts.h"
#include "passes/fuse_relu.h"
#include "placement/search.h"

namespace snug {

Plan compile(const Graph& model, const Backend& unlimited, const CompileOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  Backend backend = unlimited;
  if (options.workspace_limit) backend.workspace_limit = options.workspace_limit;
  std::vector<PassTiming> timings;

  // One node where two would read and write the same bytes; weights in the layout that the backend's kernels want.
  const Graph graph = choose_weight_layouts(fuse_relu(model), backend);

  // Which values backward keeps: bits, argmax or the values themselves.
  const std::vector<int> recipes = choose_recipes(graph);
  // Forward, explicit backward, update, evaluation: one list of nodes each.
  Program program = lower(graph, {.batch = options.batch, .sgd = options.sgd, .recipes = recipes});
  // Every memory method is a rewrite of those lists.
  const PassContext context{.backend = backend, .checkpoint = options.checkpoint, .costs = options.costs};
  program = run_passes(std::move(program), pipeline(), context, options.passes, timings);
  // Byte offsets for every value, and with them the peak.
  Plan plan = place(std::move(program), options.red_zone);

  plan.pass_timings = std::move(timings);
  plan.plan_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return plan;
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

}  // namespace

Plan place(Program program, Bytes red_zone) {
  SNUG_CHECK(red_zone.count() % kAlignment.count() == 0, "a red zone of {} bytes would break the alignment", red_zone.count());
  check_sizes(program);
  Plan plan;
  plan.program = std::move(program);
  plan.red_zone = red_zone;

  Bytes at;
  Bytes end;
  for (const State& state : plan.program.states) {
    SNUG_CHECK(state.space == MemorySpace::device, "states in host memory are not planned yet");
    at += red_zone;
    plan.state_offsets.push_back(at);
    end = at + state.type.bytes() + red_zone;
    at = round_up(end, kAlignment);
  }
  plan.persistent_bytes = at;
  plan.planned_peak_bytes = end;
  plan.bound_bytes = end;

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
