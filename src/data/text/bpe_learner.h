// Learns a byte-level BPE from texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "data/text/bpe_files.h"
#include "data/text/words.h"

namespace snug::data {

// Counts words, then merges again and again the pair of neighbors that is most frequent in them; of several that with the lower
// numbers. The tokens are the 256 bytes in the order of their spelling, one per merge, and <|endoftext|>: GPT-2's order. The same
// texts give the same tokens, in whatever pieces they come, and the merges are those of Hugging Face's BpeTrainer with a
// min_frequency of 2.
class BpeLearner {
 public:
  // Of words that are this long the beginning is one word, and so on.
  static constexpr std::size_t kLongestWord = 128;

  // When there are more different words, the rarer half of them is forgotten.
  explicit BpeLearner(std::size_t most_words = 1'000'000) : most_words_(most_words) {}

  void feed(std::string_view bytes);
  // The end of a text. The next feed() begins another.
  void end_text();

  // A tokenizer of at most `vocabulary` tokens; fewer where no pair occurs twice any more. UserError for fewer than 257.
  BpeDefinition learn(std::int64_t vocabulary) const;

 private:
  void add(std::string_view part, bool is_end);
  void count(std::string_view word);

  std::size_t most_words_;
  std::unordered_map<std::string, std::int64_t> words_;
  std::string word_;  // parts of the present one
  WordSplitter splitter_;
};

// From the training part of a text data set.
BpeDefinition learn_bpe(const std::string& spec, std::int64_t vocabulary);

// As a tokenizer.json, which Hugging Face's `tokenizers` reads, too.
std::string print_tokenizer_json(const BpeDefinition& definition);

}  // namespace snug::data
