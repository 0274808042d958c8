// Random problems that are the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

#include "base/bytes.h"
#include "placement/problem.h"

namespace snug::placement {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  // lowest <= result <= highest. Not a std:: distribution: those differ between libraries.
  std::int64_t between(std::int64_t lowest, std::int64_t highest) {
    return lowest + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(highest - lowest + 1));
  }

 private:
  std::mt19937_64 engine_;
};

struct RandomProblemOptions {
  std::size_t items = 100;
  std::int32_t steps = 100;
  std::int32_t longest_life = 30;
  std::int64_t largest_size = 10'000;
};

// One item in twenty has no bytes, and one in five a size that needs no rounding.
inline Problem make_random_problem(Random& random, const RandomProblemOptions& options) {
  Problem problem;
  for (std::size_t i = 0; i < options.items; ++i) {
    const auto begin = static_cast<std::int32_t>(random.between(0, options.steps - 1));
    const auto life = static_cast<std::int32_t>(random.between(1, options.longest_life));
    Bytes size(random.between(1, options.largest_size));
    if (random.between(1, 20) == 1) size = Bytes(0);
    if (random.between(1, 5) == 1) size = round_up(size, problem.alignment);
    problem.items.push_back({size, begin, begin + life});
  }
  return problem;
}

}  // namespace snug::placement
