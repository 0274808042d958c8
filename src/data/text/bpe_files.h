// The files of byte-level BPE tokenizers, as GPT-2 and Hugging Face's `tokenizers` write them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/bpe_merges.h"

namespace snug::data {

// A token whose text is always that token, wherever it stands.
struct AddedToken {
  std::string text;
  Token token = 0;

  friend bool operator==(const AddedToken&, const AddedToken&) = default;
};

struct BpeDefinition {
  std::vector<std::string> tokens;  // their bytes, by number
  std::array<Token, 256> bytes{};   // the token of each byte
  std::vector<Merge> merges;        // in the order of their ranks
  std::vector<AddedToken> added;    // in the order of their tokens
  std::optional<Token> end_of_text;

  friend bool operator==(const BpeDefinition&, const BpeDefinition&) = default;
};

// No token may be longer: what an encoder holds back of a text grows with the longest.
inline constexpr std::size_t kLongestToken = 1024;

// What the texts of files say. `source` names the file in a UserError.
BpeDefinition parse_tokenizer_json(std::string_view text, const std::string& source);
// `<|endoftext|>` is an added token where the vocabulary has it.
BpeDefinition parse_vocab_and_merges(std::string_view vocab, const std::string& vocab_source, std::string_view merges,
                                     const std::string& merges_source);

// `path` as in open_tokenizer().
BpeDefinition read_bpe(const std::filesystem::path& path);

}  // namespace snug::data
