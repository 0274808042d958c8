// Chooses what comes next by its scores.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace snug::train {

struct Sampling {
  double temperature = 1;  // scores are divided by it; 0: the likeliest is taken, the first of equals
  std::int64_t top_k = 0;  // only so many, the likeliest; 0: all
  double top_p = 1;        // only the fewest whose probabilities add up to this
  std::uint64_t seed = 0;
};

// UserError when a number is not possible.
void check(const Sampling& sampling);

class Sampler {
 public:
  explicit Sampler(const Sampling& sampling);

  // One of the classes that the scores belong to. The same scores, seed and position give the same one; computed in double, so
  // that it does not depend on the device. Scores are finite.
  std::int64_t sample(std::span<const double> scores, std::uint64_t position);

 private:
  struct Candidate {
    std::int64_t label;
    double weight;  // its probability, times that of the likeliest
  };

  Sampling sampling_;
  std::vector<Candidate> candidates_;
};

}  // namespace snug::train
