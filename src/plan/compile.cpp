#include "plan/compile.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "placement/search.h"

namespace snug {

Plan compile(Program model, const Backend& unlimited, const CompileOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<PassTiming> timings;
  // Forward, explicit backward, update, evaluation: one list of nodes each.
  Program program = lower_model(std::move(model), unlimited, options, &timings);
  // Every memory method is a rewrite of those lists.
  program = rewrite(std::move(program), unlimited, options, timings);
  // Byte offsets for every value, and with them the peak.
  Plan plan = place(std::move(program), options.red_zone);
  plan.methods = complete(options.methods, plan.program);

  plan.pass_timings = std::move(timings);
  plan.plan_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return plan;
}

Program lower_model(Program model, const Backend& backend, const CompileOptions& options, std::vector<PassTiming>* timings) {
  check_passes(pipeline(), options.passes, options.methods);
  const PassContext context{
      .backend = backend, .methods = options.methods, .sparse = options.sparse, .batch = options.batch, .update = options.update};
  std::vector<PassTiming> unwanted;
  return run_passes(std::move(model), model_passes(), context, options.passes, timings == nullptr ? unwanted : *timings);
}

Program rewrite(Program program, const Backend& unlimited, const CompileOptions& options, std::vector<PassTiming>& timings) {
  check_passes(pipeline(), options.passes, options.methods);
  Backend backend = unlimited;
  if (options.methods.workspace_limit) backend.workspace_limit = options.methods.workspace_limit;
  // Deep networks ask about the same few dozen nodes many times.
  if (backend.answers == nullptr) backend.answers = std::make_shared<KernelAnswers>();
  const PassContext context{
      .backend = backend, .methods = options.methods, .costs = options.costs, .optimal_answers = options.optimal_answers};
  return run_passes(std::move(program), memory_passes(), context, options.passes, timings);
}

Methods complete(Methods methods, const Program& program) {
  methods.precision = methods.precision.value_or(DType::f32);
  methods.microbatch = program.microbatch;
  methods.checkpoint = methods.checkpoint.value_or(CheckpointStrategy{});
  if (methods.fuse_update == false) methods.fuse_update.reset();
  return normalized(methods);
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

// The states in one memory space, one after the other at the start of its arena.
struct PersistentRegion {
  Bytes end;   // of the last state
  Bytes size;  // transient values start here
};

// Calls `put` with the offset of each state.
template <typename Put>
PersistentRegion persistent_region(const Program& program, MemorySpace space, Bytes red_zone, const Put& put) {
  PersistentRegion region;
  for (std::size_t i = 0; i < program.states.size(); ++i) {
    if (program.states[i].space != space) continue;
    region.size += red_zone;
    put(i, region.size);
    region.end = region.size + program.states[i].type.bytes() + red_zone;
    region.size = round_up(region.end, kAlignment);
  }
  return region;
}

// Everything in one memory space.
void place_in(MemorySpace space, Plan& plan) {
  ArenaPlan& arena = plan.in(space);
  const auto put = [&](std::size_t state, Bytes offset) { plan.state_offsets[state] = offset; };
  const PersistentRegion persistent = persistent_region(plan.program, space, plan.red_zone, put);
  arena = {.persistent_bytes = persistent.size, .planned_peak_bytes = persistent.end, .bound_bytes = persistent.end};
  for (SectionPlan& section : plan.sections) {
    const std::vector<std::size_t> buffers = buffers_in(section.liveness, space);
    if (buffers.empty()) continue;
    placement::Result result = placement::place(placement_problem(section.liveness, space, plan.red_zone));
    section.in(space) = {.height = result.placement.height, .bound = result.bound, .method = std::move(result.method)};
    for (std::size_t i = 0; i < buffers.size(); ++i)
      section.offsets[buffers[i]] = arena.persistent_bytes + result.placement.offsets[i] + plan.red_zone;
    arena.planned_peak_bytes = std::max(arena.planned_peak_bytes, arena.persistent_bytes + result.placement.height);
    arena.bound_bytes = std::max(arena.bound_bytes, arena.persistent_bytes + result.bound);
  }
}

}  // namespace

Bytes arena_bound(const Program& program, Bytes red_zone) {
  check_sizes(program);
  constexpr MemorySpace kDevice = MemorySpace::device;
  const PersistentRegion persistent = persistent_region(program, kDevice, red_zone, [](std::size_t, Bytes) {});
  Bytes bound = persistent.end;
  for (const Section& section : program.sections) {
    const placement::Problem problem = placement_problem(liveness(section), kDevice, red_zone);
    if (!problem.items.empty()) bound = std::max(bound, persistent.size + placement::lower_bound(problem));
  }
  return bound;
}

Plan place(Program program, Bytes red_zone) {
  SNUG_CHECK(red_zone.count() % kAlignment.count() == 0, "a red zone of {} bytes would break the alignment", red_zone.count());
  check_sizes(program);
  Plan plan;
  plan.program = std::move(program);
  plan.red_zone = red_zone;
  plan.state_offsets.resize(plan.program.states.size());
  for (const Section& section : plan.program.sections) {
    SectionPlan placed;
    placed.liveness = liveness(section);
    placed.offsets.resize(placed.liveness.buffers.size());
    plan.sections.push_back(std::move(placed));
  }
  for (const MemorySpace space : kMemorySpaces) place_in(space, plan);
  const auto violation = find_violation(plan);
  SNUG_CHECK(!violation, "the plan of '{}' is not valid: {}", plan.program.name, violation.value_or(""));
  return plan;
}

}  // namespace snug
