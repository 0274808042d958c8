// The plan: a program with every byte placed. Immutable once made, and the only truth about memory: the command prints it, tests
// assert on it, the runtime obeys it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "analysis/liveness.h"
#include "ir/program.h"
#include "passes/pass.h"
#include "placement/problem.h"

namespace snug {

struct SectionPlan {
  Liveness liveness;
  std::vector<Bytes> offsets;  // by buffer, from the arena's start
  Bytes height;                // of the transient region in this section
  Bytes bound;                 // what liveness alone demands: no placement is lower
  std::string method;          // what found the placement
};

// What makes the model itself smaller, in a recipe's words: a plan on file says it, since it fits no other form of the model.
struct ModelForm {
  std::string precision = "fp32";
  double nonzero = 1;  // the share of the convolutions' weights that is stored
  std::int64_t momentum_bits = 32;

  friend bool operator==(const ModelForm&, const ModelForm&) = default;
};

struct Plan {
  Program program;
  std::optional<ModelForm> form;  // nothing: not known
  // The threads, processor and libraries whose kernels were chosen (Backend::made_for); empty: not known.
  std::string made_for;
  // Room kept free on either side of every state and buffer, for checking mode; 0 in every other plan.
  Bytes red_zone;
  std::vector<Bytes> state_offsets;   // by state, from the arena's start
  Bytes persistent_bytes;             // states come first; transient values start here
  std::vector<SectionPlan> sections;  // one for each of the program's
  Bytes planned_peak_bytes;           // the arena's size: gaps and alignment included
  Bytes bound_bytes;                  // the persistent region and the largest section's bound
  std::vector<PassTiming> pass_timings;
  double plan_seconds = 0;

  // Where a value lies, from the arena's start.
  Bytes offset_of(std::size_t section, ValueId id) const;
};

// The placement problem of one section's buffers; a plan's offsets solve it from `persistent_bytes` on.
placement::Problem placement_problem(const Liveness& liveness, Bytes red_zone);

// One sentence about the first thing wrong with the plan: lifetimes that are not its program's, or offsets and sizes that do not
// go with them, checked independently of how they were found.
std::optional<std::string> find_violation(const Plan& plan);

// The fullest moment: what is alive when the section that needs most runs the node that needs most.
struct LiveValue {
  std::string name;
  Bytes size;
  MemoryClass memory_class;
};
struct PeakMoment {
  SectionKind section = SectionKind::micro;
  int node = 0;
  std::string node_text;
  std::array<Bytes, kMemoryClasses> by_class{};  // states included
  Bytes gap_bytes;                               // alignment and placement: planned peak less the classes' sum
  std::vector<LiveValue> largest;                // transient and persistent, largest first
};
PeakMoment peak_moment(const Plan& plan);

}  // namespace snug
