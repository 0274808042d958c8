// Where a command's or a trainer's node times come from, and how they are measured.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/cost.h"
#include "ir/kernel.h"
#include "plan/fit.h"

namespace snug {

// Node times of this machine and backend.
struct Costs {
  std::filesystem::path file;   // where they are kept; empty: nowhere
  std::vector<NodeCost> nodes;  // empty: the fixed table
  ProductSpeeds speeds;         // the backend's
  std::string note;             // one sentence for the user about a file that was not taken; empty: all is well

  CostTable table() const { return make_cost_table(nodes, speeds); }
};

// `choice` is a file, "none" for the fixed table, or nothing for this machine's own file, which need not be there. A file that
// the user names and that is missing, damaged or of another machine is a UserError; the machine's own is then not used, and
// `note` says so.
Costs find_costs(const std::optional<std::string>& choice, const Backend& backend);

// The same for whoever is about to measure: a named file may be missing, and the machine's own is set aside when it cannot be
// used. UserError about "none", and where there is no home to keep the machine's own in.
Costs find_costs_to_measure(const std::optional<std::string>& choice, const Backend& backend);

// Measures what `costs` does not have yet of the request's model: plain plans of the whole batch, its half, and so on down to the
// smallest microbatch that is allowed, then plans of the frontier that run other kernels than those. Sizes that this machine has
// no memory for are left out. Writes the file after each of them. `say` gets a line about each size.
void measure_costs(const FitRequest& request, const Backend& backend, Costs& costs,
                   const std::function<void(const std::string&)>& say);

// Whether the machine has memory for the plan's arena. A host arena is mapped without asking, and a process that then takes what
// is not there is ended; a GPU's arena is refused when it is made.
bool has_room(const Plan& plan, const Backend& backend);

// Whether seconds by these costs say anything: the fixed table is about processors.
bool can_predict(const Costs& costs, const Backend& backend);
// Predicted seconds of a plan's step; nothing where there is nothing to predict from.
std::optional<double> predict_step_seconds(const Costs& costs, const Plan& plan, const Backend& backend);

// "measured on this machine" or "fixed table"
std::string describe_source(const Costs& costs);

}  // namespace snug
