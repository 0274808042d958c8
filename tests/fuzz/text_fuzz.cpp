// Any bytes as a text: however it is cut into pieces, its words, its tokens and what is not UTF-8 are those of the whole, and the
// tokens give the text back. The input: a byte for the size of pieces, six merges of two bytes each, how often the rest is
// repeated, and the rest.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/bpe_tokenizer.h"
#include "data/text/utf8.h"
#include "data/text/words.h"

namespace {

using namespace snug::data;

// A part of a text for `use`, until it has ended.
template <typename Use>
void in_pieces(std::string_view text, std::size_t size, const Use& use) {
  for (; !text.empty(); text.remove_prefix(std::min(size, text.size()))) use(text.substr(0, size));
}

std::vector<std::string> words_of(std::string_view text, std::size_t size) {
  std::vector<std::string> words;
  bool goes_on = false;
  const WordSplitter::Take take = [&](std::string_view bytes, bool is_end) {
    if (!goes_on) words.emplace_back();
    words.back() += bytes;
    goes_on = !is_end;
  };
  WordSplitter splitter;
  in_pieces(text, size, [&](std::string_view piece) { splitter.feed(piece, take); });
  splitter.finish(take);
  return words;
}

std::vector<Token> tokens_of(const Tokenizer& tokenizer, std::string_view text, std::size_t size) {
  std::vector<Token> tokens;
  const TakeTokens take = [&](std::span<const Token> more) { tokens.insert(tokens.end(), more.begin(), more.end()); };
  const auto encoder = tokenizer.encoder();
  in_pieces(text, size, [&](std::string_view piece) { encoder->feed(piece, take); });
  encoder->finish(take);
  return tokens;
}

std::pair<std::int64_t, std::int64_t> bad_bytes_of(std::string_view text, std::size_t size) {
  Utf8Check check;
  in_pieces(text, size, [&](std::string_view piece) { check.feed(piece); });
  check.finish();
  return {check.bad_bytes(), check.first_bad()};
}

// Tokens that are there already are merged: numbers below that of the merge.
BpeDefinition definition_of(std::span<const std::uint8_t> numbers) {
  BpeDefinition definition;
  for (int byte = 0; byte < 256; ++byte) {
    definition.tokens.emplace_back(1, static_cast<char>(byte));
    definition.bytes[static_cast<std::size_t>(byte)] = byte;
  }
  for (std::size_t i = 0; i + 1 < numbers.size(); i += 2) {
    // Odd numbers are of merges, as far as there are any.
    const auto token = [&](std::uint8_t number) -> Token {
      const auto made = static_cast<Token>(definition.tokens.size()) - 256;
      return number % 2 == 1 && made > 0 ? 256 + (number / 2) % made : number / 2 % 26 + 'a';
    };
    const Merge merge{
        .left = token(numbers[i]), .right = token(numbers[i + 1]), .merged = static_cast<Token>(definition.tokens.size())};
    if (std::ranges::any_of(definition.merges, [&](const Merge& m) { return m.left == merge.left && m.right == merge.right; }))
      continue;
    definition.tokens.push_back(definition.tokens[static_cast<std::size_t>(merge.left)] +
                                definition.tokens[static_cast<std::size_t>(merge.right)]);
    definition.merges.push_back(merge);
  }
  return definition;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kHead = 14;
  if (size < kHead) return 0;
  const std::size_t piece = 1 + data[0] % 32;
  const auto tokenizer = bpe_tokenizer(definition_of(std::span(data, size).subspan(1, 12)), "fuzz");
  const std::string_view unit(reinterpret_cast<const char*>(data + kHead), size - kHead);
  std::string text(unit);
  // Long words are rare, because they take long.
  if (data[13] == 0xA5) {
    while (!unit.empty() && text.size() < 90'000) text += unit;
  }
  if (words_of(text, piece) != words_of(text, text.size() + 1)) std::abort();
  if (bad_bytes_of(text, piece) != bad_bytes_of(text, text.size() + 1)) std::abort();
  const std::vector<Token> tokens = tokenizer->encode(text);
  if (tokenizer->decode(tokens) != text || tokens_of(*tokenizer, text, piece) != tokens) std::abort();
  // Word by word, each as a whole.
  const BpeDefinition definition = definition_of(std::span(data, size).subspan(1, 12));
  const BpeMerges merges(definition.bytes, definition.merges);
  BpeMerges::Scratch scratch;
  std::vector<Token> expected;
  for (const std::string& word : words_of(text, text.size() + 1)) merges.encode(word, scratch, expected);
  if (expected != tokens) std::abort();
  return 0;
}
