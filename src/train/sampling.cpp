#include "train/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/philox.h"
#include "train/scores.h"

namespace snug::train {

namespace {

// [0, 1) with 53 bits: 32 would never draw the rarest of many classes. Nothing else is drawn by this seed while a text is
// written.
double draw(std::uint64_t seed, std::uint64_t position) {
  const PhiloxBlock block = philox(seed, position, 0);
  return uniform_unit(block.word[0]) + uniform_unit(block.word[1] & ~0x7FFU) * uniform_unit(1);
}

}  // namespace

void check(const Sampling& sampling) {
  if (!(sampling.temperature >= 0 && std::isfinite(sampling.temperature)))
    throw_user_error("a temperature of {} is not possible; use a number from 0 on", sampling.temperature);
  if (sampling.top_k < 0) throw_user_error("the likeliest {} are not possible; use a number from 0 (all) on", sampling.top_k);
  if (!(sampling.top_p > 0 && sampling.top_p <= 1))
    throw_user_error("a share of {} of the probability is not possible; use a number above 0 and at most 1", sampling.top_p);
}

Sampler::Sampler(const Sampling& sampling) : sampling_(sampling) { check(sampling); }

std::int64_t Sampler::sample(std::span<const double> scores, std::uint64_t position) {
  const std::int64_t likeliest = predicted_class(scores);
  if (sampling_.temperature == 0 || sampling_.top_k == 1) return likeliest;
  const double largest = scores[static_cast<std::size_t>(likeliest)];
  candidates_.clear();
  for (std::size_t k = 0; k < scores.size(); ++k) {
    candidates_.push_back(
        {.label = static_cast<std::int64_t>(k), .weight = std::exp((scores[k] - largest) / sampling_.temperature)});
  }
  // By score, since far behind the likeliest weights of different scores are all 0; of equals the first class.
  const auto before = [&](const Candidate& a, const Candidate& b) {
    const double of_a = scores[static_cast<std::size_t>(a.label)], of_b = scores[static_cast<std::size_t>(b.label)];
    return of_a != of_b ? of_a > of_b : a.label < b.label;
  };
  const auto most = static_cast<std::size_t>(sampling_.top_k);
  if (most > 0 && most < candidates_.size()) {
    std::ranges::nth_element(candidates_, candidates_.begin() + static_cast<std::ptrdiff_t>(most), before);
    candidates_.resize(most);
  }
  if (most > 0 || sampling_.top_p < 1) std::ranges::sort(candidates_, before);
  double total = std::transform_reduce(candidates_.begin(), candidates_.end(), 0.0, std::plus(),
                                       [](const Candidate& candidate) { return candidate.weight; });
  if (sampling_.top_p < 1) {
    const double wanted = sampling_.top_p * total;
    std::size_t count = 0;
    for (total = 0; count < candidates_.size() && total < wanted; ++count) total += candidates_[count].weight;
    candidates_.resize(count);
  }
  double rest = draw(sampling_.seed, position) * total;
  const Candidate* chosen = &candidates_.front();
  for (const Candidate& candidate : candidates_) {
    if (candidate.weight == 0) continue;  // rounding may leave some of `rest` at the end
    chosen = &candidate;
    if (rest < candidate.weight) break;
    rest -= candidate.weight;
  }
  return chosen->label;
}

}  // namespace snug::train
