// What a run's language model writes.
#include <nlohmann/json.hpp>

#include "api/generation.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/trained_run.h"
#include "report/text.h"
#include "settings/knobs.h"

namespace snug::cli {

namespace {

constexpr std::int64_t kMost = 1'000'000'000;

GenerationOptions options_of(const Flags& flags, const settings::Recipe& recipe) {
  GenerationOptions options;
  options.sampling.temperature = 0.8;
  options.sampling.seed = recipe.seed;
  if (flags.tokens) options.tokens = settings::parse_count("--tokens", *flags.tokens, {.least = 1, .most = kMost});
  if (flags.top_k) options.sampling.top_k = settings::parse_count("--top-k", *flags.top_k, {.least = 0, .most = kMost});
  if (flags.top_p)
    options.sampling.top_p = settings::parse_number("--top-p", *flags.top_p, {.least = 0, .most = 1, .least_included = false});
  if (flags.temperature)
    options.sampling.temperature = settings::parse_number("--temperature", *flags.temperature, {.least = 0, .most = 1e6});
  return options;
}

std::string_view name_of(Generated::End end) {
  switch (end) {
    case Generated::End::enough:
      return "tokens";
    case Generated::End::end_of_text:
      return "end_of_text";
    case Generated::End::context_is_full:
      return "context";
  }
  return "?";
}

}  // namespace

void run_generate(const Flags& flags) {
  const TrainedRun run = open_run(flags);
  if (run.trained.kind != data::Kind::text) {
    throw_user_error("'{}' was trained on images, and only language models write; 'snug predict {}' says what it sees",
                     run.recipe.model, *flags.folder);
  }
  const GenerationOptions options = options_of(flags, run.recipe);
  const std::int64_t context =
      flags.context ? settings::parse_count("--context", *flags.context, {.least = 1, .most = kMost}) : run.trained.text.length;
  const std::unique_ptr<data::Tokenizer> tokenizer = open_tokenizer(run.recipe, run.trained);
  TextWriter writer = open_writer(run.weights, run.recipe, run.trained, context);
  const std::string prompt = flags.prompt.value_or("");
  bool said_prompt = flags.json;
  const Generated generated = generate(writer, *tokenizer, prompt, options, [&](std::string_view text) {
    if (flags.json) return;
    if (!said_prompt) write_out(prompt);
    said_prompt = true;
    write_out(text);
  });
  if (!flags.json) write_out("\n");
  if (generated.end == Generated::End::context_is_full)
    note(
        fmt::format("snug: the text has all the {} tokens that the model was opened for; --context gives more, where the model "
                    "has them",
                    context));
  const Plan& plan = writer.session.plan();
  if (!flags.json) return;
  nlohmann::ordered_json json = json_of(run, *flags.folder);
  json.update({{"prompt", prompt},
               {"prompt_tokens", generated.prompt_tokens},
               {"text", generated.text},
               {"tokens", generated.tokens},
               {"stopped_by", name_of(generated.end)},
               {"context", context},
               {"seed", options.sampling.seed},
               {"prompt_seconds", generated.prompt_seconds},
               {"tokens_per_second", generated.tokens_per_second()},
               {"planned_peak_bytes", plan.planned_peak_bytes.count()},
               {"measured_peak_bytes", writer.session.executor().measured_peak_bytes().count()}});
  write_json(json);
}

}  // namespace snug::cli
