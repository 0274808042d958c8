// The plan: a program with a byte offset for every value. Immutable, and the only source of truth about memory: the command
// prints it, tests assert on it, the runtime obeys it.
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

// What a section takes of the transient region in one memory space.
struct RegionPlan {
  Bytes height;
  Bytes bound;                              // the lower bound: what liveness alone demands
  std::string method = "nothing to place";  // what found the placement
};

// Its own figures are for the device; those for host memory, mostly zero, are in `host`.
struct SectionPlan : RegionPlan {
  Liveness liveness;
  std::vector<Bytes> offsets;  // by buffer, from the start of the arena of its memory space
  RegionPlan host;

  RegionPlan& in(MemorySpace space) { return space == MemorySpace::host ? host : *this; }
  const RegionPlan& in(MemorySpace space) const { return space == MemorySpace::host ? host : *this; }
};

// The arena of one memory space.
struct ArenaPlan {
  Bytes persistent_bytes;    // states come first; transient values start here
  Bytes planned_peak_bytes;  // its size: gaps and alignment included
  Bytes bound_bytes;         // the persistent region and the largest section's bound
};

// Each memory space is placed separately. As in its sections, the plan's own figures are for the device.
struct Plan : ArenaPlan {
  Program program;
  Methods methods;  // complete; in files of earlier versions, as much as is known
  // The threads, processor and libraries whose kernels were chosen (Backend::made_for); empty: not known.
  std::string made_for;
  // Room kept free on either side of every state and buffer, for checking mode; 0 in every other plan.
  Bytes red_zone;
  std::vector<Bytes> state_offsets;   // by state, from the start of the arena of its memory space
  std::vector<SectionPlan> sections;  // one for each of the program's
  ArenaPlan host;                     // all zero: unused
  std::vector<PassTiming> pass_timings;
  double plan_seconds = 0;

  ArenaPlan& in(MemorySpace space) { return space == MemorySpace::host ? host : *this; }
  const ArenaPlan& in(MemorySpace space) const { return space == MemorySpace::host ? host : *this; }

  // The offset of a value from the start of the arena of its memory space.
  Bytes offset_of(std::size_t section, ValueId id) const;
};

// The buffers of a section in one memory space, in order, and their placement problem; a plan's offsets, less that space's
// `persistent_bytes`, solve it.
std::vector<std::size_t> buffers_in(const Liveness& liveness, MemorySpace space);
placement::Problem placement_problem(const Liveness& liveness, MemorySpace space, Bytes red_zone);

// One sentence about the first thing wrong with the plan: lifetimes that are not its program's, or offsets and sizes that do not
// match them, checked independently of how they were found.
std::optional<std::string> find_violation(const Plan& plan);

// The device's peak: what is alive there when the section that needs most runs the node that needs most.
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
  Bytes gap_bytes;                               // alignment and placement: planned peak minus the classes' sum
  std::vector<LiveValue> largest;                // transient and persistent, largest first
};
PeakMoment peak_moment(const Plan& plan);

}  // namespace snug
