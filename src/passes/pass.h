// What a pass is, and the runner that times, verifies, dumps and can turn one off.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/cost.h"
#include "ir/kernel.h"
#include "ir/program.h"
#include "passes/checkpoint_strategy.h"

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

struct PassContext {
  const Backend& backend;
  CheckpointStrategy checkpoint = {};
  const CostTable& costs = kFixedCosts;
  int compress_bits = 4;                      // an element, for compress_activations
  OptimalAnswers* optimal_answers = nullptr;  // of a search, which runs the passes many times
};

struct Pass {
  std::string_view name;
  Exactness exactness = Exactness::exact;
  bool required = false;    // nothing can run without it
  bool on_request = false;  // runs only when it is asked for
  Program (*run)(Program, const PassContext&) = nullptr;
};

struct PassTiming {
  std::string_view name;
  double seconds = 0;
};

struct PassOptions {
  std::vector<std::string> disabled = {};
  std::vector<std::string> enabled = {};  // passes that run only on request
  std::string dump_after = {};            // a pass's name, or empty
  bool verifies = true;                   // the program after each pass; off only for programs that are compared and thrown away
  std::function<void(std::string_view pass, const std::string& text)> dump = {};
};

// The passes in the order they run; see pipeline.cpp.
std::vector<Pass> pipeline();

// Runs the passes, verifying the program after each. UserError when the options name a pass that does not exist, turn off one
// that is required, or ask for one that runs anyway.
Program run_passes(Program program, const std::vector<Pass>& passes, const PassContext& context, const PassOptions& options,
                   std::vector<PassTiming>& timings);

}  // namespace snug
