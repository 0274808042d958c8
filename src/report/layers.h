// Which layer the bytes and FLOPs belong to.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "report/flops.h"
#include "report/moments.h"

namespace snug::report {

struct LayerUse {
  std::string name;
  std::int64_t parameters = 0;
  ByClass at_peak{};      // its states, and its values alive at the peak
  PhaseFlops flops = {};  // of a step
};

// The layer of every state, by state: the one that uses it. A state that several layers use, such as the store of sparse weights,
// is listed under its own name, up to the last dot, and what is kept beside a parameter follows it; the scalars are under
// "scalars".
std::vector<std::string> layers_of_states(const Program& program);

// In the order of the network. A value belongs to the layer whose node made it, a state to the layer that
// uses it; states of several layers have separate rows, as has the scalar block. The layers' bytes
// sum to those of the peak.
std::vector<LayerUse> layers_at_peak(const Plan& plan, const PeakMoment& peak);

// The same summed over layers whose names begin with the same `components`.
std::vector<LayerUse> group_layers(std::span<const LayerUse> layers, int components);

struct ParameterCount {
  std::int64_t all = 0;
  std::int64_t trainable = 0;  // the others are frozen
};
ParameterCount count_parameters(const Program& program);

}  // namespace snug::report
