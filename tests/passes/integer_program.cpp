#include "integer_program.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "support/temporary_folder.h"

namespace snug::testing {

namespace {

class ProgramWriter {
 public:
  ProgramWriter(const RecomputationProblem& problem, double bytes, double known_cost)
      : problem_(problem), bytes_(bytes), known_cost_(known_cost) {
    const std::size_t count = problem.forward.size();
    const std::size_t stages = problem.backward.size() + 1;
    readers_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      for (const std::size_t read : problem.forward[i].reads) readers_[read].push_back(i);
    }
    // A stage needs nothing behind the last value that it or a later one reads.
    needed_end_.assign(stages + 1, 0);
    for (std::size_t t = stages; t-- > 1;) {
      needed_end_[t] = needed_end_[t + 1];
      for (const std::size_t read : problem.backward[t - 1].reads) needed_end_[t] = std::max(needed_end_[t], read + 1);
    }
    needed_end_[0] = count;
  }

  std::string text() {
    std::string objective;
    for (std::size_t t = 1; t <= problem_.backward.size(); ++t) {
      for (std::size_t i = 0; i < needed_end_[t]; ++i) {
        if (problem_.forward[i].may_run_again) objective += fmt::format(" + {} {}\n", problem_.forward[i].cost, runs(t, i));
      }
    }
    if (!objective.empty()) constrain(objective, fmt::format("<= {}", known_cost_));
    for (std::size_t t = 0; t <= problem_.backward.size(); ++t) add_stage(t);
    std::string all = "Minimize\nobj:\n" + objective + "Subject To\n" + constraints_ + "Bounds\n";
    for (const std::string& name : shares_) all += fmt::format("{} <= 1\n", name);
    all += "Binaries\n";
    for (const std::string& name : binaries_) all += name + "\n";
    return all + "End\n";
  }

 private:
  static std::string runs(std::size_t t, std::size_t i) { return fmt::format("R_{}_{}", t, i); }
  static std::string held(std::size_t t, std::size_t i) { return fmt::format("S_{}_{}", t, i); }

  // In stage 0 every node runs. Else a variable, where the node may run again.
  bool may_run(std::size_t t, std::size_t i) const { return t > 0 && i < needed_end_[t] && problem_.forward[i].may_run_again; }
  bool surely_runs(std::size_t t) const { return t == 0; }
  bool may_be_held(std::size_t t, std::size_t i) const { return t > 0 && t <= problem_.backward.size() && i < needed_end_[t]; }

  void constrain(const std::string& terms, const std::string& relation) {
    constraints_ += fmt::format("c{}: {} {}\n", number_++, terms, relation);
  }

  // The stage has the value: held, or run again. `least` on the left side.
  std::string has(std::size_t t, std::size_t i) const {
    std::string terms;
    if (may_run(t, i)) terms += " + " + runs(t, i);
    if (may_be_held(t, i)) terms += " + " + held(t, i);
    return terms;
  }

  void add_stage(std::size_t t) {
    const std::size_t end = needed_end_[t];
    for (std::size_t i = 0; i < end; ++i) {
      if (may_run(t, i)) binaries_.push_back(runs(t, i));
      if (!may_be_held(t, i)) continue;
      binaries_.push_back(held(t, i));
      if (t > 1) constrain(held(t, i) + negated(has(t - 1, i)), "<= 0");
      for (const std::size_t read : problem_.forward[i].reads) {
        if (may_run(t, i)) constrain(runs(t, i) + negated(has(t, read)), "<= 0");
      }
    }
    if (t > 0) {
      for (const std::size_t read : problem_.backward[t - 1].reads) constrain(has(t, read).substr(3), ">= 1");
      for (std::size_t i = 0; i < end; ++i) add_thrift(t, i);
    }
    add_memory(t);
  }

  // No best solution runs what is held, or what nothing reads: to say so makes the search shorter.
  void add_thrift(std::size_t t, std::size_t i) {
    if (!may_run(t, i)) return;
    constrain(runs(t, i) + " + " + held(t, i), "<= 1");
    const std::vector<std::size_t>& reads = problem_.backward[t - 1].reads;
    if (std::find(reads.begin(), reads.end(), i) != reads.end()) return;
    std::string uses;
    for (const std::size_t reader : readers_[i]) {
      if (may_run(t, reader)) uses += " - " + runs(t, reader);
    }
    if (may_be_held(t + 1, i)) uses += " - " + held(t + 1, i);
    constrain(runs(t, i) + uses, "<= 0");
  }

  static std::string negated(std::string terms) {
    std::replace(terms.begin(), terms.end(), '+', '-');
    return terms;
  }

  // Bytes while each node runs: what is held from before, what was made, less what has gone.
  void add_memory(std::size_t t) {
    const double gradients = t == 0 ? 0 : problem_.backward[t - 1].bytes_before;
    std::string sum;
    double constant = gradients;
    for (std::size_t i = 0; i < needed_end_[t]; ++i) {
      if (may_be_held(t, i)) sum += fmt::format(" + {} {}\n", problem_.forward[i].bytes, held(t, i));
    }
    for (std::size_t k = 0; k < needed_end_[t]; ++k) {
      if (!surely_runs(t) && !may_run(t, k)) continue;
      if (surely_runs(t)) {
        constant += problem_.forward[k].bytes;
      } else {
        sum += fmt::format(" + {} {}\n", problem_.forward[k].bytes, runs(t, k));
      }
      if (!sum.empty()) {
        constrain(sum, fmt::format("<= {}", bytes_ - constant));
      } else if (constant > bytes_) {
        constrain("0 " + runs(1, 0), ">= 1");
      }
      std::vector<std::size_t> goes = problem_.forward[k].reads;
      goes.push_back(k);
      for (const std::size_t i : goes) {
        if (const std::string gone = add_gone(t, i, k); !gone.empty()) {
          sum += fmt::format(" - {} {}\n", problem_.forward[i].bytes, gone);
        }
      }
    }
    if (t == 0) return;
    const BackwardStage& stage = problem_.backward[t - 1];
    // The step itself: what the next stage holds, and what it reads.
    std::string step = sum;
    if (!step.empty()) constrain(step, fmt::format("<= {}", bytes_ - stage.bytes));
    std::string after;
    for (std::size_t i = 0; i < needed_end_[t + 1]; ++i) {
      if (may_be_held(t + 1, i)) after += fmt::format(" + {} {}\n", problem_.forward[i].bytes, held(t + 1, i));
    }
    if (!after.empty()) constrain(after, fmt::format("<= {}", bytes_ - stage.bytes_after));
  }

  // A share (0 or 1 where it matters) that is 1 only if value i may go behind node k of the stage: k runs, no later node or step
  // of the stage reads it, the next stage does not hold it.
  std::string add_gone(std::size_t t, std::size_t i, std::size_t k) {
    if (t > 0) {
      const std::vector<std::size_t>& reads = problem_.backward[t - 1].reads;
      if (std::find(reads.begin(), reads.end(), i) != reads.end()) return "";
    }
    std::vector<std::size_t> later;
    for (const std::size_t reader : readers_[i]) {
      if (reader <= k) continue;
      if (surely_runs(t)) return "";
      if (may_run(t, reader)) later.push_back(reader);
    }
    std::string name = fmt::format("F_{}_{}_{}", t, i, k);
    shares_.push_back(name);
    if (may_run(t, k)) constrain(name + " - " + runs(t, k), "<= 0");
    if (may_be_held(t + 1, i)) constrain(name + " + " + held(t + 1, i), "<= 1");
    for (const std::size_t reader : later) constrain(name + " + " + runs(t, reader), "<= 1");
    return name;
  }

  const RecomputationProblem& problem_;
  double bytes_;
  double known_cost_;
  std::vector<std::vector<std::size_t>> readers_;
  std::vector<std::size_t> needed_end_;  // by stage: forward values from here on are of no use to it or later ones
  std::string constraints_;
  std::vector<std::string> binaries_;
  std::vector<std::string> shares_;
  int number_ = 0;
};

}  // namespace

std::optional<double> least_recomputation(const RecomputationProblem& problem, double bytes, double known_cost) {
  const support::TemporaryFolder folder;
  const std::string program = (folder.path() / "program.lp").string();
  const std::string solution = (folder.path() / "solution.txt").string();
  std::ofstream(program) << ProgramWriter(problem, bytes, known_cost).text();
  const std::string log = (folder.path() / "log.txt").string();
  const std::string command = fmt::format("cbc {} -allowableGap 0.999 -solve -solution {} > {} 2>&1", program, solution, log);
  if (std::system("command -v cbc > /dev/null 2>&1") != 0) {
    throw std::runtime_error("the program 'cbc' is missing; run scripts/setup.sh check, which installs coinor-cbc");
  }
  if (std::system(command.c_str()) != 0) throw std::runtime_error("cbc failed");
  std::ifstream file(solution);
  std::string first;
  std::getline(file, first);
  if (first.starts_with("Infeasible") || first.starts_with("Integer infeasible")) return std::nullopt;
  constexpr std::string_view kOptimal = "Optimal - objective value ";
  if (!first.starts_with(kOptimal)) {
    std::stringstream said;
    said << std::ifstream(log).rdbuf();
    throw std::runtime_error("cbc says '" + first + "'\n" + said.str());
  }
  return std::stod(first.substr(kOptimal.size()));
}

}  // namespace snug::testing
