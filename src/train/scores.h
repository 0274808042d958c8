// What trained weights say of examples: the scores of their classes, and how often the largest is right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/stream.h"
#include "train/session.h"

namespace snug::train {

// Of a session whose program keeps its scores (passes/model/evaluate_only.h), which must outlive this.
class Scores {
 public:
  explicit Scores(const Session& session);

  // Those of the last microbatch that was evaluated; allocates nothing.
  void read();
  // Of one of its examples: a number for each class.
  std::span<const double> of(std::size_t example) const;

 private:
  const Session& session_;
  std::size_t classes_;
  std::vector<std::byte> stored_;
  std::vector<double> values_;
};

// The class that counts as predicted: the first of equals, as the loss counts; -1 where a score is not a number.
std::int64_t predicted_class(std::span<const double> scores);

struct ClassProbability {
  std::int64_t label = 0;
  double probability = 0;
};
// The softmax of the scores, likeliest first and of equals in the order of the classes; at most `most` of them.
std::vector<ClassProbability> likeliest(std::span<const double> scores, std::size_t most);

// How many examples of a class were seen, and how many of them were predicted as that class.
struct ClassTally {
  std::int64_t examples = 0;
  std::int64_t correct = 0;

  double accuracy() const { return examples > 0 ? static_cast<double>(correct) / static_cast<double>(examples) : 0; }
};

// Tallies each class while a split is evaluated: evaluate_split(..., [&](const data::Batch& batch) { tallies.add(batch); }).
class ClassTallies {
 public:
  // UserError when the model gives an example more than one label, or none.
  explicit ClassTallies(const Session& session);

  // A batch that was evaluated just now, at most a microbatch.
  void add(const data::Batch& batch);
  // By class.
  std::span<const ClassTally> classes() const { return tallies_; }

 private:
  Scores scores_;
  std::string_view labels_;  // what the input is called
  std::vector<ClassTally> tallies_;
};

}  // namespace snug::train
