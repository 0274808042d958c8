// The words of a sentence as BLEU counts them. How a sentence is cut into words decides the score, so scores are only comparable
// under the same rules: these are sacrebleu's (Post, "A call for clarity in reporting BLEU scores", WMT 2018), to the character.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace snug::data {

enum class BleuTokenizer : std::uint8_t {
  mteval_13a,     // NIST's mteval-v13a.pl: entities become characters, punctuation is cut off in ASCII
  international,  // mteval-v14.pl with --international-tokenization: all punctuation and symbols of Unicode are cut off
  characters,     // each character is a word
  none,           // words are what lies between spaces
  multi_bleu      // the same, as Moses' multi-bleu.perl does it, which knows bytes alone: only spaces and letters of ASCII count
};

// The words with one space between them, which no word has. `sentence` may have line ends; what they mean says the tokenizer.
std::u32string bleu_words(std::u32string_view sentence, BleuTokenizer tokenizer, bool lowercase);

}  // namespace snug::data
