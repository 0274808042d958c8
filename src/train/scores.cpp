#include "train/scores.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "io/elements.h"

namespace snug::train {

namespace {

const Type& scores_type(const Session& session) {
  const Program& program = session.plan().program;
  SNUG_CHECK(program.scores.valid(), "the program of '{}' keeps no scores", program.name);
  return program.state(program.scores).type;
}

}  // namespace

Scores::Scores(const Session& session)
    : session_(session),
      classes_(static_cast<std::size_t>(scores_type(session).shape.dims().back())),
      stored_(session.logical_bytes(session.plan().program.scores)),
      values_(static_cast<std::size_t>(scores_type(session).elements())) {}

void Scores::read() {
  session_.read_logical(session_.plan().program.scores, stored_);
  io::convert_elements(scores_type(session_).dtype, stored_, DType::f64, std::as_writable_bytes(std::span(values_)));
}

std::span<const double> Scores::of(std::size_t example) const { return std::span(values_).subspan(example * classes_, classes_); }

std::int64_t predicted_class(std::span<const double> scores) {
  std::size_t best = 0;
  for (std::size_t k = 0; k < scores.size(); ++k) {
    if (std::isnan(scores[k])) return -1;
    if (scores[k] > scores[best]) best = k;
  }
  return static_cast<std::int64_t>(best);
}

std::vector<ClassProbability> likeliest(std::span<const double> scores, std::size_t most) {
  const double largest = *std::ranges::max_element(scores);  // taken out, so that no exponential overflows
  double sum = 0;
  std::vector<ClassProbability> classes;
  for (std::size_t k = 0; k < scores.size(); ++k) {
    classes.push_back({.label = static_cast<std::int64_t>(k), .probability = std::exp(scores[k] - largest)});
    sum += classes.back().probability;
  }
  for (ClassProbability& each : classes) each.probability /= sum;
  most = std::min(most, classes.size());
  // By score: far behind the likeliest, probabilities of different scores are all 0.
  const auto before = [&](const ClassProbability& a, const ClassProbability& b) {
    const double of_a = scores[static_cast<std::size_t>(a.label)];
    const double of_b = scores[static_cast<std::size_t>(b.label)];
    return of_a != of_b ? of_a > of_b : a.label < b.label;
  };
  std::partial_sort(classes.begin(), classes.begin() + static_cast<std::ptrdiff_t>(most), classes.end(), before);
  classes.resize(most);
  return classes;
}

ClassTallies::ClassTallies(const Session& session) : scores_(session) {
  const ProgramLoss& loss = session.loss();
  const Program& program = session.plan().program;
  if (!loss.labels.valid() || loss.rows_per_example != 1)
    throw_user_error("'{}' does not give each example one label; there are no classes to count by", program.name);
  labels_ = program.state(loss.labels).name;
  tallies_.resize(static_cast<std::size_t>(loss.classes));
}

void ClassTallies::add(const data::Batch& batch) {
  scores_.read();
  const auto labels = std::ranges::find(batch.inputs, labels_, &data::NamedBytes::name);
  SNUG_CHECK(labels != batch.inputs.end(), "a batch without labels was evaluated");
  for (std::size_t i = 0; i < batch.examples; ++i) {
    std::int32_t label = 0;
    std::memcpy(&label, labels->bytes.data() + i * sizeof label, sizeof label);
    ClassTally& tally = tallies_.at(static_cast<std::size_t>(label));
    ++tally.examples;
    if (predicted_class(scores_.of(i)) == label) ++tally.correct;
  }
}

}  // namespace snug::train
