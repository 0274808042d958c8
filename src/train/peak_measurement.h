// How a run finds its peak: the first steps and an evaluation run with a canary in the arena, the others at full speed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "train/session.h"

namespace snug::train {

class PeakMeasurement {
 public:
  explicit PeakMeasurement(Session& session) : session_(session) { session_.executor().start_measuring(); }

  bool running() const { return steps_ < kSteps; }
  void after_step(const Examples& examples) {
    if (!running() || ++steps_ < kSteps) return;
    // Twice, since the canary alternates; two examples do: what a section touches does not depend on how many there are.
    const std::size_t count = std::min<std::size_t>(2, examples.count);
    std::vector<data::NamedBytes> few(examples.inputs.begin(), examples.inputs.end());
    for (data::NamedBytes& input : few) input.bytes = input.bytes.first(input.bytes.size() / examples.count * count);
    for (int i = 0; i < 2; ++i) session_.evaluate({.inputs = few, .count = count});
    session_.executor().stop_measuring();
  }

 private:
  static constexpr int kSteps = 2;
  Session& session_;
  int steps_ = 0;
};

}  // namespace snug::train
