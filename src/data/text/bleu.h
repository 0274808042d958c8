// BLEU of a corpus (Papineni et al., "BLEU: a method for automatic evaluation of machine translation", ACL 2002), as sacrebleu
// computes it: how many n-grams of one to four words of the hypotheses their references have, too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "data/text/bleu_words.h"

namespace snug::data {

inline constexpr std::size_t kBleuOrder = 4;

enum class BleuSmoothing : std::uint8_t {
  none,
  // Of an order without a match half a match is assumed, of the next such order a quarter, and so on (mteval-v13a.pl).
  exponential
};

// What the score is computed from, summed over the sentences.
struct BleuCounts {
  std::int64_t sentences = 0;
  std::int64_t hypothesis_words = 0;
  std::int64_t reference_words = 0;                   // of each sentence the reference whose length is nearest
  std::array<std::int64_t, kBleuOrder> matches = {};  // n-grams of n = index + 1 words that a reference has, too
  std::array<std::int64_t, kBleuOrder> totals = {};   // all of the hypotheses

  friend bool operator==(const BleuCounts&, const BleuCounts&) = default;
};

struct BleuScore {
  double score = 0;                                // 0 to 100
  std::array<double, kBleuOrder> precisions = {};  // the same
  double brevity_penalty = 1;
  double ratio = 0;  // of hypothesis_words to reference_words
};

// Where no n-gram of some order can be, because all sentences are too short, the score is 0: the effective order is not adapted,
// as is usual for a corpus. A score is 0, too, where nothing matches.
BleuScore bleu_of(const BleuCounts& counts, BleuSmoothing smoothing);

struct BleuRules {
  BleuTokenizer tokenizer = BleuTokenizer::mteval_13a;
  bool lowercase = false;

  friend bool operator==(const BleuRules&, const BleuRules&) = default;
};

// Adds a sentence and its references, of which there is at least one. An n-gram counts as often as the reference with most of it
// has it.
void add_sentence(BleuCounts& counts, std::u32string_view hypothesis, std::span<const std::u32string_view> references,
                  const BleuRules& rules);

// Of files with a sentence on each line; each of the references has a line for each of the hypotheses. Nothing resident grows
// with their length. UserError when they have no lines or different numbers of them, or some bytes are not UTF-8.
BleuCounts count_files(const std::filesystem::path& hypotheses, std::span<const std::filesystem::path> references,
                       const BleuRules& rules);

}  // namespace snug::data
