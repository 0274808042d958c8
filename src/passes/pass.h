// What a pass is, the list of all, and the runner that times, verifies, dumps and can turn one off.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/cost.h"
#include "ir/kernel.h"
#include "ir/program.h"
#include "ops/updates/update_rule.h"
#include "passes/methods.h"
#include "passes/model/sparsify.h"

namespace snug {

// What a method may change; a user says how far down a plan may go.
enum class Exactness : std::uint8_t {
  exact,         // bit-identical
  reassociated,  // the same sums in another order
  microbatch,    // the same mathematics except batch-norm statistics
  precision,
  compressed,
  sparse,
};

class OptimalAnswers;

// What passes are told.
struct PassContext {
  const Backend& backend;
  Methods methods = {};
  SparseOptions sparse = {};
  std::int64_t batch = 0;  // examples per step; 0: as many as the model's microbatch
  ops::UpdateOptions update = {};
  const CostTable& costs = kFixedCosts;
  OptimalAnswers* optimal_answers = nullptr;  // of a search, which runs the passes many times
};

struct Pass {
  std::string_view name;
  Exactness exactness = Exactness::exact;
  std::string_view always_because = {};            // why it cannot be turned off, as the end of a sentence; empty: it can
  bool (*is_asked_for)(const Methods&) = nullptr;  // nullptr: it always runs
  Program (*run)(Program, const PassContext&) = nullptr;
};

struct PassTiming {
  std::string_view name;
  double seconds = 0;
};

struct PassOptions {
  std::vector<std::string> disabled = {};
  std::string dump_after = {};  // a pass's name, or empty
  bool verifies = true;         // the program after each pass; off only for programs that are only compared
  std::function<void(std::string_view pass, const std::string& text)> dump = {};
};

// The stages of compilation in the order they run; see pipeline.cpp. The first half makes a model into a program, and depends on
// neither the strategy nor the limits that a search tries; the second rewrites it.
std::vector<Pass> model_passes();
std::vector<Pass> memory_passes();
std::vector<Pass> pipeline();  // both

// For options that come from outside, before any pass runs: UserError when they name a pass that does not exist, or turn off one
// that must run or that the methods ask for.
void check_passes(const std::vector<Pass>& passes, const PassOptions& options, const Methods& methods);

// Runs the passes, verifying the program after each.
Program run_passes(Program program, const std::vector<Pass>& passes, const PassContext& context, const PassOptions& options,
                   std::vector<PassTiming>& timings);

}  // namespace snug
