// A trained language model that writes: a plan that takes one token after the other, and the loop around it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/evaluation.h"
#include "data/dataset.h"
#include "data/text/tokenizer.h"
#include "settings/recipe.h"
#include "train/sampling.h"
#include "train/session.h"

namespace snug {

// The recipe's language model, reading one token at a time of a text of at most `context` tokens: its weights, the keys and
// values of the tokens so far, and what one token takes. UserError when the model takes no text, or no such context.
Plan generation_plan(const settings::Recipe& recipe, const data::Description& trained, const Backend& backend,
                     std::int64_t context);

// The tokenizer of the run. UserError when it is another one by now.
std::unique_ptr<data::Tokenizer> open_tokenizer(const settings::Recipe& recipe, const data::Description& trained);

struct TextWriter {
  train::Session session;
  std::int64_t context;  // tokens of a text at most
};
// A session for that plan with these weights, whose peak has been measured.
TextWriter open_writer(const WeightsSource& weights, const settings::Recipe& recipe, const data::Description& trained,
                       std::int64_t context);

struct GenerationOptions {
  std::int64_t tokens = 200;  // after the prompt, at most
  train::Sampling sampling;
};

struct Generated {
  enum class End : std::uint8_t { enough, end_of_text, context_is_full };

  std::size_t prompt_tokens = 0;
  std::vector<data::Token> tokens;  // after the prompt, without the end of the text
  std::string text;                 // of these tokens
  End end = End::enough;
  double prompt_seconds = 0;
  double seconds = 0;  // for `tokens`

  double tokens_per_second() const { return seconds > 0 ? static_cast<double>(tokens.size()) / seconds : 0; }
};

// Continues the prompt; `use` gets the text as it is made, in whole characters. An empty prompt begins a text, where the
// tokenizer has an end of texts. UserError when the prompt does not fit into the context, or is empty and cannot be.
Generated generate(TextWriter& writer, const data::Tokenizer& tokenizer, std::string_view prompt,
                   const GenerationOptions& options, const std::function<void(std::string_view)>& use);

}  // namespace snug
