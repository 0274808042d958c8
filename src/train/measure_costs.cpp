#include "train/measure_costs.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/median.h"

namespace snug::train {

namespace {

constexpr SectionKind kStepSections[] = {SectionKind::micro, SectionKind::update};

// A GPU still updates weights when a step returns: without this the update would be missing here, and in the first node that is
// timed after it.
void wait_for_update(Session& session) { session.executor().read_metrics(); }

double seconds_of_step(Session& session, const Examples& examples) {
  const auto start = std::chrono::steady_clock::now();
  session.train_step(examples);
  wait_for_update(session);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Seconds of every run of every node of the step, section by section.
using NodeTimes = std::vector<std::vector<double>>;

void time_nodes(Session& session, const Examples& examples, NodeTimes& times) {
  Executor& executor = session.executor();
  executor.start_timing();
  session.train_step(examples);
  executor.stop_timing();
  std::size_t at = 0;
  for (const SectionKind kind : kStepSections) {
    for (const double seconds : executor.node_seconds(kind)) {
      if (at == times.size()) times.emplace_back();
      times[at++].push_back(seconds);
    }
  }
}

}  // namespace

void spread_difference(std::span<double> seconds, double whole) {
  const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  if (seconds.empty() || !(sum > 0) || !(whole > 0)) return;
  constexpr double kLeastShare = 0.1;
  const double each = (whole - sum) / static_cast<double>(seconds.size());
  double moved = 0;
  for (double& s : seconds) {
    s = std::max(s + each, kLeastShare * s);
    moved += s;
  }
  for (double& s : seconds) s *= whole / moved;
}

std::vector<NodeCost> measure_costs(Session& session, const Examples& examples, int repeats) {
  const Program& program = session.plan().program;
  SNUG_CHECK(examples.count <= static_cast<std::size_t>(program.microbatch), "{} examples are more than one microbatch",
             examples.count);
  session.train_step(examples);  // compiles kernels and touches every page
  wait_for_update(session);
  std::vector<double> whole;
  NodeTimes times;
  for (int i = 0; i < repeats; ++i) {
    whole.push_back(seconds_of_step(session, examples));
    time_nodes(session, examples, times);
  }
  std::vector<double> seconds;
  for (const std::vector<double>& runs : times) seconds.push_back(median(runs));
  spread_difference(seconds, median(whole));

  // Nodes of one kind take different times in different places of a step; their mean keeps the sum.
  std::map<std::pair<std::string, std::string>, std::pair<NodeCost, int>> kinds;
  std::size_t at = 0;
  for (const SectionKind kind : kStepSections) {
    const Section* section = program.find_section(kind);
    for (const Node& node : section->nodes) {
      NodeCost cost = describe_cost(*section, node);
      auto& [known, count] = kinds.try_emplace({cost.key, cost.kernel}, cost, 0).first->second;
      known.seconds += seconds[at++];
      ++count;
    }
  }
  std::vector<NodeCost> costs;
  for (auto& [key, entry] : kinds) {
    entry.first.seconds /= entry.second;
    costs.push_back(std::move(entry.first));
  }
  return costs;
}

}  // namespace snug::train
