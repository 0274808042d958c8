#include <algorithm>
#include <random>

#include "data/support.h"
#include "data/text/bpe_tokenizer.h"
#include "data/text/small_bpe.h"

namespace snug::data {
namespace {

// The definition: again and again the pair of the lowest rank, the leftmost of several.
std::vector<Token> merge_slowly(const BpeDefinition& definition, const std::string& word) {
  std::vector<Token> tokens;
  for (const char c : word) tokens.push_back(definition.bytes[static_cast<unsigned char>(c)]);
  for (;;) {
    std::size_t best_rank = definition.merges.size();
    std::size_t best_at = 0;
    for (std::size_t at = 0; at + 1 < tokens.size(); ++at) {
      for (std::size_t rank = 0; rank < best_rank; ++rank) {
        const Merge& merge = definition.merges[rank];
        if (merge.left != tokens[at] || merge.right != tokens[at + 1]) continue;
        best_rank = rank;
        best_at = at;
      }
    }
    if (best_rank == definition.merges.size()) return tokens;
    tokens[best_at] = definition.merges[best_rank].merged;
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
  }
}

std::vector<Token> merge(const BpeDefinition& definition, const std::string& word) {
  const BpeMerges merges(definition.bytes, definition.merges);
  BpeMerges::Scratch scratch;
  std::vector<Token> tokens;
  merges.encode(word, scratch, tokens);
  return tokens;
}

std::vector<Token> encode_in_pieces(const Tokenizer& tokenizer, const std::string& text, std::size_t size,
                                    std::size_t* most_held = nullptr) {
  std::vector<Token> tokens;
  std::size_t taken = 0;
  const TakeTokens take = [&](std::span<const Token> more) {
    tokens.insert(tokens.end(), more.begin(), more.end());
    for (const Token token : more) taken += tokenizer.bytes_of(token).size();
  };
  const auto encoder = tokenizer.encoder();
  for (std::size_t at = 0; at < text.size(); at += size) {
    const std::string_view piece = std::string_view(text).substr(at, size);
    encoder->feed(piece, take);
    if (most_held != nullptr) *most_held = std::max(*most_held, at + piece.size() - taken);
  }
  encoder->finish(take);
  return tokens;
}

// Tokens that merges make of the letters a to `last`, each of two that are there already.
BpeDefinition random_definition(std::mt19937& random, char last, std::size_t count) {
  MergedBytes merges;
  std::vector<std::string> tokens;
  for (char c = 'a'; c <= last; ++c) tokens.emplace_back(1, c);
  while (merges.size() < count) {
    const std::pair<std::string, std::string> pair{tokens[random() % tokens.size()], tokens[random() % tokens.size()]};
    if (pair.first.size() + pair.second.size() > 24 || std::ranges::find(merges, pair) != merges.end()) continue;
    merges.push_back(pair);
    tokens.push_back(pair.first + pair.second);
  }
  // Not only in the order in which they were made, and several may make the same token.
  if (random() % 2 == 0) std::ranges::shuffle(merges, random);
  return small_definition(merges);
}

TEST(BpeMerges, TheLowestRankGoesFirstAndThenTheLeftmost) {
  const BpeDefinition definition = small_definition({{"l", "o"}, {"e", "l"}, {"h", "e"}, {"lo", "w"}, {"a", "a"}, {"aa", "aa"}});
  const auto text_of = [&](const std::string& word) {
    std::string text;
    for (const Token token : merge(definition, word)) text += definition.tokens[static_cast<std::size_t>(token)] + "|";
    return text;
  };
  EXPECT_EQ(text_of(""), "");
  EXPECT_EQ(text_of("x"), "x|");
  EXPECT_EQ(text_of("hello"), "h|el|lo|") << "lo and then el, which leave nothing for he";
  EXPECT_EQ(text_of("low"), "low|");
  EXPECT_EQ(text_of("hel"), "h|el|");
  EXPECT_EQ(text_of("aaa"), "aa|a|");
  EXPECT_EQ(text_of("aaaaaaa"), "aaaa|aa|a|");
}

TEST(BpeMerges, AgreesWithTheDefinitionOnRandomVocabularies) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const char last = static_cast<char>('a' + random() % 4);
    const BpeDefinition definition = random_definition(random, last, 1 + random() % 20);
    for (int i = 0; i < 10; ++i) {
      std::string word;
      for (std::size_t n = random() % 60; n > 0; --n) word += static_cast<char>('a' + random() % (last - 'a' + 1));
      EXPECT_EQ(merge(definition, word), merge_slowly(definition, word)) << word;
    }
  }
}

TEST(BpeTokenizer, EncodesWordByWord) {
  const auto tokenizer = bpe_tokenizer(small_definition({{" ", "w"}, {"o", "r"}, {" w", "or"}, {"d", "!"}}), "small");
  EXPECT_EQ(tokenizer->name(), "small");
  EXPECT_EQ(tokenizer->vocabulary(), 260);
  EXPECT_EQ(tokenizer->end_of_text(), std::nullopt);
  EXPECT_FALSE(tokenizer->is_bytes());
  // No merge crosses from a letter to a sign: d! is never used.
  EXPECT_EQ(tokenizer->encode("  world!\xFF"), (std::vector<Token>{' ', 258, 'l', 'd', '!', 0xFF}));
  EXPECT_EQ(tokenizer->bytes_of(258), " wor");
  EXPECT_EQ(tokenizer->encode(""), std::vector<Token>{});
}

TEST(BpeTokenizer, AnyBytesComeBack) {
  std::mt19937 random(2);
  const auto tokenizer = bpe_tokenizer(small_definition({{"\xC3", "\xA9"}, {"a", "b"}, {" ", "ab"}}), "small");
  for (int round = 0; round < 200; ++round) {
    std::string text;
    for (std::size_t n = random() % 100; n > 0; --n)
      text += random() % 2 == 0 ? static_cast<char>(random()) : "ab \n'\xC3\xA9"[random() % 7];
    const std::vector<Token> tokens = tokenizer->encode(text);
    EXPECT_EQ(tokenizer->decode(tokens), text);
    for (const std::size_t size : {1U, 2U, 5U}) EXPECT_EQ(encode_in_pieces(*tokenizer, text, size), tokens);
  }
}

// A word of a megabyte: its tokens are handed out long before its end, and are those of the whole.
TEST(BpeTokenizer, HoldsBackLittleOfAWordWithoutEnd) {
  std::mt19937 random(3);
  for (int round = 0; round < 12; ++round) {
    const char last = static_cast<char>('a' + round % 4);
    const BpeDefinition definition = random_definition(random, last, 4 + random() % 60);
    const auto tokenizer = bpe_tokenizer(definition, "small");
    std::string word;
    // Long stretches of one letter, too: what a merge makes of these depends on where they begin.
    while (word.size() < 400'000)
      word.append(random() % 50 == 0 ? random() % 40'000 : 1, static_cast<char>('a' + random() % (last - 'a' + 1)));
    std::size_t most_held = 0;
    const std::vector<Token> tokens = encode_in_pieces(*tokenizer, word, 1000, &most_held);
    EXPECT_EQ(tokens, merge(definition, word)) << "round " << round;
    EXPECT_LT(most_held, 80'000U) << "round " << round;
  }
}

TEST(BpeTokenizer, AddedTokensAreFoundWhereverTheyStand) {
  nlohmann::ordered_json json = tokenizer_json({{"<", "|"}, {"a", "b"}});
  json["added_tokens"] = {added_token("<|endoftext|>", 258), added_token("<|end", 259), added_token("\xC3\xA9 ", 260)};
  const auto tokenizer = bpe_tokenizer(parse_tokenizer_json(json.dump(), "tokenizer.json"), "small");
  EXPECT_EQ(tokenizer->vocabulary(), 261);
  EXPECT_EQ(tokenizer->end_of_text(), 258);
  const std::string text = "ab <|endoftext|>ab<|endof<|<|endoftext|\xC3\xA9  ab";
  const std::vector<Token> tokens{257, ' ', 258, 257, 259, 'o', 'f', 256, 259, 'o',
                                  'f', 't', 'e', 'x', 't', '|', 260, ' ', 'a', 'b'};
  // " ab" is one word, but no merge begins with a space.
  std::vector<Token> expected = tokens;
  expected.resize(expected.size() - 2);
  expected.push_back(257);
  EXPECT_EQ(tokenizer->encode(text), expected);
  EXPECT_EQ(tokenizer->decode(expected), text);
  for (std::size_t size = 1; size < 20; ++size) EXPECT_EQ(encode_in_pieces(*tokenizer, text, size), expected);
}

// In front of an added token a text ends: its last space is not kept for a word that follows.
TEST(BpeTokenizer, TextsEndAtAddedTokens) {
  nlohmann::ordered_json json = tokenizer_json({{" ", " "}});
  json["added_tokens"] = {added_token("<s>", 257)};
  const auto tokenizer = bpe_tokenizer(parse_tokenizer_json(json.dump(), "tokenizer.json"), "small");
  EXPECT_EQ(tokenizer->encode("a  <s>  b"), (std::vector<Token>{'a', 256, 257, ' ', ' ', 'b'}));
}

TEST(BpeTokenizer, TheFingerprintIsThatOfWhatItDoes) {
  const MergedBytes merges{{"a", "b"}, {"b", "c"}};
  const auto fingerprint = [](const BpeDefinition& definition) { return bpe_tokenizer(definition, "x")->fingerprint(); };
  const std::uint64_t files = fingerprint(small_definition(merges));
  EXPECT_EQ(fingerprint(parse_tokenizer_json(tokenizer_json(merges).dump(2), "other name")), files);
  EXPECT_NE(fingerprint(small_definition({{"b", "c"}, {"a", "b"}})), files);
  EXPECT_NE(fingerprint(small_definition({{"a", "b"}})), files);
  nlohmann::ordered_json json = tokenizer_json(merges);
  json["added_tokens"] = {added_token("ab", 256)};
  EXPECT_NE(fingerprint(parse_tokenizer_json(json.dump(), "x")), files);
  EXPECT_NE(byte_tokenizer()->fingerprint(), files);
}

}  // namespace
}  // namespace snug::data
