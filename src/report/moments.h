// How many bytes are alive while each node of a training step runs.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace snug::report {

using ByClass = std::array<Bytes, kMemoryClasses>;

Bytes total_of(const ByClass& by_class);

struct SectionMoments {
  std::size_t section = 0;          // index in the program
  std::vector<ByClass> alive = {};  // by node, states included
};

// The sections of one step in the order they run: micro (once here, however many microbatches there are) and update.
std::vector<SectionMoments> moments_of_step(const Plan& plan);

// What outlives every section: parameters, gradients, optimizer state, statistics, staging, scalars.
ByClass states_by_class(const Program& program);

// The place of a node in a step.
struct Moment {
  std::size_t section = 0;
  std::size_t node = 0;
  ByClass alive{};
};

// The peak of each layer (by the first two components of its name), largest first: neighboring nodes need almost the same bytes,
// so a list of the largest nodes would be repetitive.
std::vector<Moment> largest_moments(const Program& program, const std::vector<SectionMoments>& moments);

// The first `count` components of a layer's name: "group1.block2" of "group1.block2.conv1" for 2.
std::string_view first_components(std::string_view layer, int count);

}  // namespace snug::report
