#include "api/generation.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "api/prepare.h"
#include "base/counted.h"
#include "base/error.h"
#include "frontend/zoo.h"
#include "ir/verify.h"
#include "passes/model/decode_only.h"
#include "plan/compile.h"
#include "train/data_record.h"
#include "train/scores.h"

namespace snug {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// One token at its place in the text; afterwards the session has the scores of what follows it.
void read_token(train::Session& session, data::Token token, std::int32_t position) {
  const std::array<data::NamedBytes, 2> inputs{
      data::NamedBytes{.name = "tokens", .bytes = std::as_bytes(std::span(&token, 1))},
      data::NamedBytes{.name = "positions", .bytes = std::as_bytes(std::span(&position, 1))}};
  session.decode({.inputs = inputs, .count = 1});
}

std::vector<data::Token> tokens_of_prompt(const data::Tokenizer& tokenizer, std::string_view prompt, std::int64_t context) {
  std::vector<data::Token> tokens = tokenizer.encode(prompt);
  if (tokens.empty()) {
    if (!tokenizer.end_of_text()) throw UserError("the prompt is empty; give at least one character to go on from");
    tokens.push_back(*tokenizer.end_of_text());
  }
  if (static_cast<std::int64_t>(tokens.size()) > context) {
    throw_user_error("the prompt has {}, more than the {} that the model reads; shorten it",
                     counted(static_cast<std::int64_t>(tokens.size()), "token"), context);
  }
  return tokens;
}

}  // namespace

Plan generation_plan(const settings::Recipe& recipe, const data::Description& trained, const Backend& backend,
                     std::int64_t context) {
  const auto size = frontend::language_model_size(recipe.model);
  if (!size) throw_user_error("'{}' was trained on images; 'snug generate' is for language models", recipe.model);
  if (context < 1 || context > size->context)
    throw_user_error("'{}' reads texts of 1 to {} tokens, not {}", recipe.model, size->context, context);
  data::Description one_token = trained;
  one_token.text.length = 1;
  const FitRequest request = fit_request(recipe, one_token);
  // Of the run's methods those that make the model and its kernels what they are; the others are of steps.
  const Methods& made = recipe.methods;
  CompileOptions options =
      options_for(request, {.precision = made.precision, .nonzero = made.nonzero, .workspace_limit = made.workspace_limit});
  options.batch = 1;
  Program program = decode_only(lower_model(request.model(1), backend, options), context);
  verify(program, "after decode_only");
  std::vector<PassTiming> timings;
  return place(rewrite(std::move(program), backend, options, timings));
}

std::unique_ptr<data::Tokenizer> open_tokenizer(const settings::Recipe& recipe, const data::Description& trained) {
  std::unique_ptr<data::Tokenizer> tokenizer = data::open_tokenizer(recipe.tokenizer.value_or("bytes"));
  train::check_tokenizer(trained, {.tokenizer = tokenizer->name(), .tokenizer_fingerprint = tokenizer->fingerprint()});
  return tokenizer;
}

TextWriter open_writer(const WeightsSource& weights, const settings::Recipe& recipe, const data::Description& trained,
                       std::int64_t context) {
  const Backend backend = open_backend(recipe);
  train::Session session(generation_plan(recipe, trained, backend, context), backend, recipe.seed, train::Start::from_file);
  load_weights(weights, session);
  // Which bytes a token touches depends on neither the token nor its position. Twice, since the canary alternates.
  session.executor().start_measuring();
  for (int i = 0; i < 2; ++i) read_token(session, 0, 0);
  session.executor().stop_measuring();
  return {.session = std::move(session), .context = context};
}

Generated generate(TextWriter& writer, const data::Tokenizer& tokenizer, std::string_view prompt,
                   const GenerationOptions& options, const std::function<void(std::string_view)>& use) {
  train::Session& session = writer.session;
  const std::vector<data::Token> begin = tokens_of_prompt(tokenizer, prompt, writer.context);
  train::Sampler sampler(options.sampling);
  train::Scores scores(session);
  data::Decoder decoder(tokenizer);
  Generated generated{.prompt_tokens = begin.size()};
  const auto say = [&](const std::string& text) {
    generated.text += text;
    if (!text.empty()) use(text);
  };

  auto start = std::chrono::steady_clock::now();
  std::int32_t position = 0;
  for (const data::Token token : begin) read_token(session, token, position++);
  generated.prompt_seconds = seconds_since(start);
  start = std::chrono::steady_clock::now();
  while (static_cast<std::int64_t>(generated.tokens.size()) < options.tokens) {
    if (!generated.tokens.empty()) {
      if (position == writer.context) {
        generated.end = Generated::End::context_is_full;
        break;
      }
      read_token(session, generated.tokens.back(), position++);
    }
    scores.read();
    // A model may know more tokens than its tokenizer.
    const std::span<const double> of_tokens = scores.of(0).first(static_cast<std::size_t>(tokenizer.vocabulary()));
    if (!std::ranges::all_of(of_tokens, [](double score) { return std::isfinite(score); })) {
      throw UserError(
          "what the network computes is out of the range of its numbers; train it in fp32, or with a smaller --learning-rate");
    }
    const auto token = static_cast<data::Token>(sampler.sample(of_tokens, static_cast<std::uint64_t>(position)));
    if (token == tokenizer.end_of_text()) {
      generated.end = Generated::End::end_of_text;
      break;
    }
    generated.tokens.push_back(token);
    say(decoder.feed(token));
  }
  say(decoder.finish());
  generated.seconds = seconds_since(start);
  return generated;
}

}  // namespace snug
