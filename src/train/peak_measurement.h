// How a run measures its peak: the first steps and an evaluation run with a canary in the arena, the others at full speed.
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
    // Which bytes a section touches does not depend on how many of its examples are valid, so two are enough; where there are
    // smaller shapes, one example more than they have room for runs the largest shape.
    std::size_t least = 2;
    for (const Section& section : session_.plan().program.sections)
      least = std::max(least, static_cast<std::size_t>(section.shape.examples) + 1);
    evaluate(examples, 2);
    if (least > 2) evaluate(examples, least);
    session_.executor().stop_measuring();
  }

 private:
  // Twice, since the canary alternates.
  void evaluate(const Examples& examples, std::size_t most) {
    const std::size_t count = std::min(most, examples.count);
    std::vector<data::NamedBytes> few(examples.inputs.begin(), examples.inputs.end());
    for (data::NamedBytes& input : few) input.bytes = input.bytes.first(input.bytes.size() / examples.count * count);
    for (int i = 0; i < 2; ++i) session_.evaluate({.inputs = few, .count = count});
  }

  static constexpr int kSteps = 2;
  Session& session_;
  int steps_ = 0;
};

}  // namespace snug::train
