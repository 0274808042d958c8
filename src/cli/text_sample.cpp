#include "cli/text_sample.h"

#include <fmt/format.h>

#include "api/generation.h"
#include "base/error.h"
#include "cli/output.h"
#include "cli/trained_run.h"

namespace snug::cli {

namespace {

constexpr std::int64_t kTokens = 200;
constexpr double kTemperature = 0.8;

std::string sample_of(const std::string& folder) {
  Flags flags;
  flags.folder = folder;
  const TrainedRun run = open_run(flags);
  const std::unique_ptr<data::Tokenizer> tokenizer = open_tokenizer(run.recipe, run.trained);
  TextWriter writer = open_writer(run.weights, run.recipe, run.trained, run.trained.text.length);
  GenerationOptions options{.tokens = kTokens};
  options.sampling.temperature = kTemperature;
  options.sampling.seed = run.recipe.seed;
  // Something has to stand before the first token that is drawn.
  const std::string prompt = tokenizer->end_of_text() ? "" : "The ";
  return prompt + generate(writer, *tokenizer, prompt, options, [](std::string_view /*text*/) {}).text;
}

}  // namespace

void write_sample(const std::string& folder) {
  try {
    write_out(fmt::format("it writes:\n{}\n\n", sample_of(folder)));
  } catch (const UserError& error) {
    note(fmt::format("snug: no sample is written: {}", error.what()));
  }
}

}  // namespace snug::cli
