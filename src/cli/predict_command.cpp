// What a run's weights see in image files.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "api/evaluation.h"
#include "base/error.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/trained_run.h"
#include "settings/knobs.h"

namespace snug::cli {

namespace {

constexpr std::int64_t kTop = 3;

nlohmann::ordered_json prediction_json(const Prediction& prediction, const data::Description& trained) {
  nlohmann::ordered_json classes = nlohmann::ordered_json::array();
  for (const auto& [label, probability] : prediction.classes)
    classes.push_back({{"class", class_name(trained, label)}, {"probability", probability}});
  return {{"file", prediction.file},
          {"class", classes.front()["class"]},
          {"probability", classes.front()["probability"]},
          {"classes", std::move(classes)}};
}

// "photo.png  cat 98.2%  dog 1.1%  fox 0.4%"
std::string prediction_text(const Prediction& prediction, const data::Description& trained) {
  std::string line = printable(prediction.file, prediction.file.size());
  for (const auto& [label, probability] : prediction.classes)
    line += fmt::format("  {} {:.1f}%", printable(class_name(trained, label)), 100 * probability);
  return line + "\n";
}

}  // namespace

void run_predict(const Flags& flags) {
  const auto top =
      static_cast<std::size_t>(flags.top ? settings::parse_count("--top", *flags.top, {.least = 1, .most = 1'000'000}) : kTop);
  const TrainedRun run = open_run(flags);
  if (run.trained.kind == data::Kind::text) {
    throw_user_error("'{}' was trained on text, not on images; 'snug generate {}' writes with it", run.recipe.model,
                     *flags.folder);
  }
  if (flags.files.empty()) {
    throw_user_error("'snug predict' needs image files, as in 'snug predict {} photo.png' (see 'snug predict --help')",
                     *flags.folder);
  }
  const std::int64_t at_a_time = std::min(microbatch_of(run.recipe), static_cast<std::int64_t>(flags.files.size()));
  train::Session session = open_evaluation(run.weights, run.recipe, run.trained, at_a_time);
  nlohmann::ordered_json predictions = nlohmann::ordered_json::array();
  predict_files(session, run.trained, flags.files, top, [&](const Prediction& prediction) {
    if (flags.json) {
      predictions.push_back(prediction_json(prediction, run.trained));
    } else {
      write_out(prediction_text(prediction, run.trained));
    }
  });
  if (!flags.json) return;
  nlohmann::ordered_json json = json_of(run, *flags.folder);
  json["predictions"] = std::move(predictions);
  write_json(json);
}

}  // namespace snug::cli
