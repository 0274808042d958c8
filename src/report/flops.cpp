#include "report/flops.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "analysis/cost.h"
#include "base/error.h"
#include "ir/op.h"

namespace snug::report {

namespace {

[[noreturn]] void throw_too_many() { throw UserError("this step has more FLOPs than can be counted; use a smaller --batch"); }

std::int64_t plus(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) throw_too_many();
  return sum;
}

}  // namespace

std::int64_t times(std::int64_t count, std::int64_t times) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(count, times, &product)) throw_too_many();
  return product;
}

std::int64_t PhaseFlops::total() const { return plus(plus(forward, recompute), plus(backward, update)); }

void PhaseFlops::add(Phase phase, std::int64_t flops) {
  switch (phase) {
    case Phase::init:
      break;  // not part of a step
    case Phase::forward:
      forward = plus(forward, flops);
      break;
    case Phase::recompute:
      recompute = plus(recompute, flops);
      break;
    case Phase::backward:
      backward = plus(backward, flops);
      break;
    case Phase::update:
      update = plus(update, flops);
      break;
  }
}

StepFlops flops_of_step(const Program& program) {
  StepFlops result;
  PhaseFlops micro;
  std::map<std::pair<Phase, std::string_view>, OpFlops> ops;
  for (const Section& section : program.sections) {
    const std::int64_t runs = runs_per_step(program, section);
    if (runs == 0) continue;
    for (const Node& node : section.nodes) {
      const std::int64_t once = count_flops(section, node);
      const std::int64_t flops = times(once, runs);
      if (section.kind == SectionKind::micro) micro.add(node.phase, once);
      result.step.add(node.phase, flops);
      OpFlops& op = ops.try_emplace({node.phase, node.op->name}, OpFlops{.op = node.op->name, .phase = node.phase}).first->second;
      op.nodes += 1;
      op.flops = plus(op.flops, flops);
    }
  }
  const auto per_example = [&](std::int64_t flops) {
    return std::llround(static_cast<double>(flops) / static_cast<double>(program.microbatch));
  };
  result.per_example = {.forward = per_example(micro.forward),
                        .recompute = per_example(micro.recompute),
                        .backward = per_example(micro.backward),
                        .update = 0};
  for (const auto& [key, op] : ops) result.ops.push_back(op);
  std::stable_sort(result.ops.begin(), result.ops.end(), [](const OpFlops& a, const OpFlops& b) { return a.flops > b.flops; });
  return result;
}

double flops_ratio(const PhaseFlops& step) {
  const std::int64_t all = step.total();
  const std::int64_t once = all - step.recompute;
  return once == 0 ? 1.0 : static_cast<double>(all) / static_cast<double>(once);
}

}  // namespace snug::report
