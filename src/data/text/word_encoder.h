// Words of any length to tokens of a BPE.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/text/bpe_merges.h"
#include "data/text/tokenizer.h"

namespace snug::data {

// A word comes in parts. Of a long one those tokens are handed out that nothing after them can change:
//
// The tokens of a text from its beginning to any boundary between two of its tokens are the tokens of that beginning alone, since
// no merge crossed the boundary. And for two texts A and B the tokens of AB are those of A and then those of B if and only if the
// last token u of A and the first token v of B do not change when they are encoded together: a merge across the boundary would
// have come between the bytes of u and v alone, too. So when all first tokens that what follows u can still get leave u
// unchanged, then u and all before it are final.
class WordEncoder {
 public:
  // `longest` is the most bytes that a merge makes. All must outlive the encoder.
  WordEncoder(const BpeMerges& merges, const std::vector<std::string>& tokens, std::size_t longest)
      : merges_(merges), tokens_(tokens), longest_(longest) {}

  void add(std::string_view part, bool is_end, const TakeTokens& take);

 private:
  static constexpr std::size_t kWindow = 65'536;
  static constexpr std::size_t kLongestCached = 32;
  static constexpr std::size_t kMostCached = 32'768;

  void encode_short(std::string_view word, const TakeTokens& take);
  // Hands out what is final of word_, whose end is not there yet.
  void hand_out(const TakeTokens& take);
  // Whether `last`, which ends at byte `end` of word_, stays as it is however the word goes on.
  bool is_final(Token last, std::size_t end);
  std::vector<Token>& encode(std::string_view word, std::vector<Token>& tokens);

  const BpeMerges& merges_;
  const std::vector<std::string>& tokens_;
  std::size_t longest_;
  std::string word_;              // what is not encoded
  std::size_t window_ = kWindow;  // with how many bytes hand_out() is tried
  BpeMerges::Scratch scratch_;
  std::vector<Token> found_;
  std::vector<Token> tail_;
  std::vector<Token> pair_;
  std::unordered_map<std::string, std::vector<Token>> cache_;
  std::string key_;
};

}  // namespace snug::data
