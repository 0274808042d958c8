#include "kernel_bench/step_walker.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>

#include <fmt/format.h>

#include "analysis/cost.h"
#include "base/error.h"
#include "ir/op.h"

namespace snug::bench {

namespace {

// The first operands that are more than a row of numbers.
std::string shape_of(const Section& section, const Node& node) {
  std::string shape;
  for (const ValueId id : node.inputs) {
    const Value& value = section.value(id);
    if (value.type.shape.rank() < 2 || value.role == Role::scalar) continue;
    shape += fmt::format("{}{}", shape.empty() ? "" : " ", to_string(value.type.shape));
    if (shape.find(' ') != std::string::npos) break;
  }
  if (shape.empty()) shape = to_string(section.value(node.outputs.front()).type.shape);
  return accumulates(node.attributes) ? shape + " + sum" : shape;
}

}  // namespace

StepWalker::StepWalker(train::Session& session) : executor_(session.executor()) {
  SNUG_CHECK(executor_.arena().host_accessible(), "kernels are timed one by one on the host only");
  const auto& sections = session.plan().program.sections;
  for (const SectionKind kind : {SectionKind::micro, SectionKind::update}) {
    for (std::size_t i = 0; i < sections.size(); ++i) {
      if (sections[i].kind == kind) list(i);
    }
  }
}

void StepWalker::list(std::size_t index) {
  const Plan& plan = executor_.plan();
  const Section& section = plan.program.sections[index];
  std::map<std::string, std::size_t> known;  // by cost, kernel and sharing: which distinct one
  for (std::size_t i = 0; i < section.nodes.size(); ++i) {
    const Node& node = section.nodes[i];
    Step step{.section = section.kind, .node = i, .overwritten = {}};
    NodeCost cost = describe_cost(section, node);
    std::string key = cost.key + " by " + cost.kernel;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const Bytes offset = plan.offset_of(index, node.inputs[k]);
      const MemorySpace space = section.value(node.inputs[k]).space;
      const auto lies_there = [&](ValueId o) { return section.value(o).space == space && plan.offset_of(index, o) == offset; };
      if (std::none_of(node.outputs.begin(), node.outputs.end(), lies_there)) continue;
      step.overwritten.emplace_back(executor_.arena(space).data() + offset.count(),
                                    static_cast<std::size_t>(section.value(node.inputs[k]).type.bytes().count()));
      key += fmt::format(" over {}", k);
    }
    const auto [entry, added] = known.emplace(std::move(key), distinct_.size());
    if (added) {
      distinct_.push_back({.kernel = node.kernel,
                           .shape = shape_of(section, node),
                           .first = steps_.size(),
                           .in_micro = section.kind == SectionKind::micro,
                           .in_bf16 = section.value(node.inputs.front()).type.dtype == DType::bf16,
                           .gigaflop = cost.flops * 1e-9,
                           .gigabytes = cost.bytes * 1e-9});
    }
    distinct_[entry->second].count += 1;
    steps_.push_back(std::move(step));
  }
}

void StepWalker::restore() {
  const auto& overwritten = steps_[at_].overwritten;
  for (std::size_t i = 0; i < overwritten.size(); ++i) std::memcpy(overwritten[i].data(), before_[i].data(), before_[i].size());
}

void StepWalker::go_to(std::size_t node) {
  if (at_ == node && !before_.empty()) return;
  if (ran_) restore();
  if (node < at_) {
    for (; at_ < steps_.size(); ++at_) run(steps_[at_]);
    at_ = 0;
  }
  for (; at_ < node; ++at_) run(steps_[at_]);
  ran_ = false;
  before_.clear();
  for (const auto& bytes : steps_[at_].overwritten) before_.emplace_back(bytes.begin(), bytes.end());
}

double StepWalker::run_seconds() {
  if (ran_) restore();
  ran_ = true;
  const auto start = std::chrono::steady_clock::now();
  run(steps_[at_]);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace snug::bench
