// Trained weights put to use: a plan for evaluation alone, and a session with the weights of a snapshot.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"
#include "settings/recipe.h"
#include "train/scores.h"
#include "train/session.h"

namespace snug {

// The recipe's model for that data, evaluation alone, which keeps its scores: `examples` at a time. What it takes has nothing to
// do with the run's budget: no gradients, nothing kept for backward.
Plan evaluation_plan(const settings::Recipe& recipe, const data::Description& data, const Backend& backend,
                     std::int64_t examples);

// How many examples the run's steps take at a time.
std::int64_t microbatch_of(const settings::Recipe& recipe);

// Where the weights of a trained network are: in a snapshot, or in a file of the same model (train/weights.h).
struct WeightsSource {
  std::filesystem::path snapshot;
  std::optional<std::filesystem::path> exported;
};
// Into a session that has none yet (Start::from_file). Those of a file are all of them, none drawn anew.
void load_weights(const WeightsSource& source, train::Session& session);

// A session for that plan, with these weights: they are in logical order, and fit any plan of the model.
train::Session open_evaluation(const WeightsSource& weights, const settings::Recipe& recipe, const data::Description& data,
                               std::int64_t examples);

// What the weights say of one file.
struct Prediction {
  std::string_view file;
  std::vector<train::ClassProbability> classes;  // the likeliest first
};

// Reads image files (PNG, JPEG), brought to the size that the session's network was trained on, and hands out the `most`
// likeliest classes of each, in order. Takes the pixels of one microbatch beside the session. UserError naming the first file
// that cannot be read, after those before it.
void predict_files(train::Session& session, const data::Description& trained, std::span<const std::string> files,
                   std::size_t most, const std::function<void(const Prediction&)>& use);

// What a label is called. A network may tell more classes apart than its data had.
std::string class_name(const data::Description& trained, std::int64_t label);

}  // namespace snug
