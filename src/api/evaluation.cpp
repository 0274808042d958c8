#include "api/evaluation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>

#include "api/prepare.h"
#include "base/error.h"
#include "data/images/image_file.h"
#include "ir/verify.h"
#include "passes/model/evaluate_only.h"
#include "plan/compile.h"
#include "train/snapshot.h"
#include "train/weights.h"

namespace snug {

Plan evaluation_plan(const settings::Recipe& recipe, const data::Description& data, const Backend& backend,
                     std::int64_t examples) {
  const FitRequest request = fit_request(without_statistics_of_batches(recipe), data);
  // Of the run's methods those that make the model and its kernels what they are; the others are of steps.
  const Methods& made = recipe.methods;
  CompileOptions options =
      options_for(request, {.precision = made.precision, .nonzero = made.nonzero, .workspace_limit = made.workspace_limit});
  options.batch = examples;
  Program program = evaluate_only(lower_model(request.model(examples), backend, options));
  verify(program, "after evaluate_only");
  std::vector<PassTiming> timings;
  return place(rewrite(std::move(program), backend, options, timings));
}

std::int64_t microbatch_of(const settings::Recipe& recipe) { return recipe.methods.microbatch.value_or(recipe.batch); }

void load_weights(const WeightsSource& source, train::Session& session) {
  if (source.exported) {
    train::import_weights(*source.exported, session, {.strict = true, .names_flags = false});
  } else {
    train::load_snapshot(source.snapshot, session);
  }
}

train::Session open_evaluation(const WeightsSource& weights, const settings::Recipe& recipe, const data::Description& data,
                               std::int64_t examples) {
  const Backend backend = open_backend(recipe);
  train::Session session(evaluation_plan(recipe, data, backend, examples), backend, recipe.seed, train::Start::from_file);
  load_weights(weights, session);
  return session;
}

void predict_files(train::Session& session, const data::Description& trained, std::span<const std::string> files,
                   std::size_t most, const std::function<void(const Prediction&)>& use) {
  const auto microbatch = static_cast<std::size_t>(session.plan().program.microbatch);
  train::Scores scores(session);
  std::vector<std::byte> pixels(microbatch * trained.image_bytes());
  const std::vector<std::int32_t> labels(microbatch, 0);  // what the loss says of them is not read
  for (std::size_t first = 0; first < files.size(); first += microbatch) {
    const std::size_t wanted = std::min(microbatch, files.size() - first);
    std::size_t count = 0;
    std::exception_ptr unreadable;
    try {
      for (; count < wanted; ++count) {
        data::read_image_file(files[first + count], trained.width,
                              std::span(pixels).subspan(count * trained.image_bytes(), trained.image_bytes()));
      }
    } catch (const UserError&) {
      unreadable = std::current_exception();
    }
    if (count > 0) {
      const std::array<data::NamedBytes, 2> inputs{
          data::NamedBytes{.name = "images", .bytes = std::span(pixels).first(count * trained.image_bytes())},
          data::NamedBytes{.name = "labels", .bytes = std::as_bytes(std::span(labels).first(count))}};
      session.evaluate({.inputs = inputs, .count = count});
      scores.read();
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::string& file = files[first + i];
      if (!std::ranges::all_of(scores.of(i), [](double score) { return std::isfinite(score); })) {
        throw_user_error(
            "what the network computes from {} is out of the range of its numbers; train it in fp32, or with a "
            "smaller --learning-rate",
            file);
      }
      use({.file = file, .classes = train::likeliest(scores.of(i), most)});
    }
    if (unreadable) std::rethrow_exception(unreadable);
  }
}

std::string class_name(const data::Description& trained, std::int64_t label) {
  const auto index = static_cast<std::size_t>(label);
  return index < trained.class_names.size() ? trained.class_names[index] : std::to_string(label);
}

}  // namespace snug
