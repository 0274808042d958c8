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

// What a section takes of the transient region of one memory's arena.
struct RegionPlan {
  Bytes height;
  Bytes bound;                              // what liveness alone demands: no placement is lower
  std::string method = "nothing to place";  // what found the placement
};

// Its own figures are the device's; those of host memory, mostly zero, stand beside them.
struct SectionPlan : RegionPlan {
  Liveness liveness;
  std::vector<Bytes> offsets;  // by buffer, from the start of the arena of its memory
  RegionPlan host;

  RegionPlan& in(MemorySpace space) { return space == MemorySpace::host ? host : *this; }
  const RegionPlan& in(MemorySpace space) const { return space == MemorySpace::host ? host : *this; }
};

// One memory's arena.
struct ArenaPlan {
  Bytes persistent_bytes;    // states come first; transient values start here
  Bytes planned_peak_bytes;  // its size: gaps and alignment included
  Bytes bound_bytes;         // the persistent region and the largest section's bound
};

// Each memory is placed by itself. As in its sections, the plan's own figures are the device's.
struct Plan : ArenaPlan {
  Program program;
  Methods methods;  // how it was made, all of it; from files of earlier versions, as much as is known
  // The threads, processor and libraries whose kernels were chosen (Backend::made_for); empty: not known.
  std::string made_for;
  // Room kept free on either side of every state and buffer, for checking mode; 0 in every other plan.
  Bytes red_zone;
  std::vector<Bytes> state_offsets;   // by state, from the start of the arena of its memory
  std::vector<SectionPlan> sections;  // one for each of the program's
  ArenaPlan host;                     // all zero: nothing lies there
  std::vector<PassTiming> pass_timings;
  double plan_seconds = 0;

  ArenaPlan& in(MemorySpace space) { return space == MemorySpace::host ? host : *this; }
  const ArenaPlan& in(MemorySpace space) const { return space == MemorySpace::host ? host : *this; }

  // Where a value lies, from the start of the arena of its memory.
  Bytes offset_of(std::size_t section, ValueId id) const;
};

// The buffers of a section that lie in one memory, in order, and their placement problem; a plan's offsets solve it from that
// memory's `persistent_bytes` on.
std::vector<std::size_t> buffers_in(const Liveness& liveness, MemorySpace space);
placement::Problem placement_problem(const Liveness& liveness, MemorySpace space, Bytes red_zone);

// One sentence about the first thing wrong with the plan: lifetimes that are not its program's, or offsets and sizes that do not
// go with them, checked independently of how they were found.
std::optional<std::string> find_violation(const Plan& plan);

// The device's fullest moment: what is alive there when the section that needs most runs the node that needs most.
struct LiveValue {
  std::string name;
  Bytes size;
  MemoryClass memory_class;
};
struct PeakMoment {
  SectionId section = SectionKind::micro;
  int node = 0;
  std::string node_text;
  std::array<Bytes, kMemoryClasses> by_class{};  // states included
  Bytes gap_bytes;                               // alignment and placement: planned peak less the classes' sum
  std::vector<LiveValue> largest;                // transient and persistent, largest first
};
PeakMoment peak_moment(const Plan& plan);

}  // namespace snug
