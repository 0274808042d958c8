#include "data/text/bpe_learner.h"

#include <map>
#include <random>

#include "data/support.h"
#include "data/text/bpe_tokenizer.h"
#include "support/messages.h"

namespace snug::data {
namespace {

BpeDefinition learned(const std::string& text, std::int64_t vocabulary) {
  BpeLearner learner;
  learner.feed(text);
  learner.end_text();
  return learner.learn(vocabulary);
}

std::vector<std::string> merged_tokens(const BpeDefinition& definition) {
  std::vector<std::string> texts;
  for (const Merge& merge : definition.merges) texts.push_back(definition.tokens[static_cast<std::size_t>(merge.merged)]);
  return texts;
}

// The definition: counts everything again before each merge.
std::vector<std::string> learned_slowly(const std::vector<std::string>& words, std::size_t merges) {
  const BpeDefinition bytes = learned("", 257);
  std::vector<std::vector<std::string>> parts;
  for (const std::string& word : words) {
    parts.emplace_back();
    for (const char c : word) parts.back().emplace_back(1, c);
  }
  std::map<std::string, Token> number;
  for (std::size_t i = 0; i < 256; ++i) number[bytes.tokens[i]] = static_cast<Token>(i);
  std::vector<std::string> found;
  while (found.size() < merges) {
    std::map<std::pair<Token, Token>, int> counts;
    for (const auto& word : parts) {
      for (std::size_t i = 0; i + 1 < word.size(); ++i) ++counts[{number[word[i]], number[word[i + 1]]}];
    }
    const auto best =
        std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });  // the first of several
    if (best == counts.end() || best->second < 2) break;
    for (auto& word : parts) {
      for (std::size_t i = 0; i + 1 < word.size(); ++i) {
        if (number[word[i]] != best->first.first || number[word[i + 1]] != best->first.second) continue;
        word[i] += word[i + 1];
        word.erase(word.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
    }
    const auto text_of = [&](Token token) {
      return std::ranges::find(number, token, [](const auto& entry) { return entry.second; })->first;
    };
    const std::string text = text_of(best->first.first) + text_of(best->first.second);
    found.push_back(text);
    number.emplace(text, static_cast<Token>(number.size()));
  }
  return found;
}

TEST(BpeLearner, MergesTheMostFrequentPairAgainAndAgain) {
  const BpeDefinition definition = learned("low low low lower lower newest newest newest newest", 256 + 6 + 1);
  // we is there 6 times and lo 5. Then many pairs are 4 times, and the lower numbers go first: those of bytes before those of
  // merges, letters in their order, and a space after all of them.
  EXPECT_EQ(merged_tokens(definition), (std::vector<std::string>{"we", "lo", "ewe", "newe", "st", " lo"}));
  EXPECT_EQ(definition.tokens.size(), 263U);
  EXPECT_EQ(definition.end_of_text, 262);
  EXPECT_EQ(definition.tokens[0], "!");
  EXPECT_EQ(definition.tokens[255], "\xAD") << "the last of the alphabet";
}

TEST(BpeLearner, AgreesWithTheDefinitionOnRandomWords) {
  std::mt19937 random(1);
  for (int round = 0; round < 60; ++round) {
    std::vector<std::string> words;
    std::string text;
    const std::size_t letters = 1 + random() % 3;
    for (std::size_t n = 1 + random() % 40; n > 0; --n) {
      std::string word = words.empty() ? "" : " ";
      for (std::size_t i = 1 + random() % 24; i > 0; --i) word += static_cast<char>('a' + random() % letters);
      text += word;
      words.push_back(std::move(word));
    }
    EXPECT_EQ(merged_tokens(learned(text, 256 + 30 + 1)), learned_slowly(words, 30)) << text;
  }
}

TEST(BpeLearner, PiecesAndOrderOfTextsMakeNoDifference) {
  const std::string a = "the whale, the sea; the whale's tail";
  const std::string b = "and the sea again 1851 1851";
  BpeLearner forward;
  forward.feed(a);
  forward.end_text();
  forward.feed(b);
  forward.end_text();
  BpeLearner backward;
  for (const std::string& text : {b, a}) {
    for (const char& c : text) backward.feed({&c, 1});
    backward.end_text();
  }
  EXPECT_EQ(forward.learn(300), backward.learn(300));
}

TEST(BpeLearner, StopsWhereNoPairOccursTwice) {
  const BpeDefinition definition = learned("abc abd", 10'000);
  EXPECT_EQ(merged_tokens(definition), (std::vector<std::string>{"ab"}));
  EXPECT_EQ(definition.tokens.size(), 258U);
  EXPECT_TRUE(support::mentions(user_error_of([] { learned("abc", 256); }), {"256", "small", "257"}));
}

TEST(BpeLearner, ForgetsTheRarestWordsWhenThereAreTooMany) {
  BpeLearner learner(/*most_words=*/100);
  for (int i = 0; i < 50; ++i) learner.feed(" frequent");
  for (int i = 0; i < 5000; ++i)
    learner.feed(" x" + std::string(1, static_cast<char>('a' + i % 26)) + std::string(1, static_cast<char>('a' + i / 26 % 26)));
  learner.end_text();
  const std::vector<std::string> tokens = merged_tokens(learner.learn(300));
  EXPECT_NE(std::ranges::find(tokens, " frequent"), tokens.end());
}

TEST(BpeLearner, LongWordsAreCut) {
  const BpeDefinition definition = learned(std::string(100'000, 'a'), 1000);
  EXPECT_EQ(definition.tokens[static_cast<std::size_t>(definition.merges.back().merged)].size(), BpeLearner::kLongestWord);
}

TEST(BpeLearner, WhatIsPrintedReadsBackEqual) {
  const BpeDefinition definition = learned("l\xC3\xA9vi l\xC3\xA9vi \"\\ \"\\ \xFF\xFE \xFF\xFE\n\n\n\n", 280);
  EXPECT_GT(definition.merges.size(), 5U);
  EXPECT_EQ(parse_tokenizer_json(print_tokenizer_json(definition), "printed"), definition);
}

TEST(BpeLearner, LearnsFromTheTrainingPartOfData) {
  const TestFolder folder;
  write_text(folder.path() / "d/train.txt", "ab ab ab ab");
  write_text(folder.path() / "d/test.txt", "xy xy xy xy xy xy");
  const BpeDefinition definition = learn_bpe((folder.path() / "d").string(), 300);
  EXPECT_EQ(merged_tokens(definition), (std::vector<std::string>{"ab", " ab"}));
}

TEST(BpeLearner, MakesTheNovelShorter) {
  const auto tokenizer = bpe_tokenizer(learn_bpe("embedded-text", 2048), "learned");
  EXPECT_EQ(tokenizer->vocabulary(), 2048);
  const std::string text = "Call me Ishmael. Some years ago\xE2\x80\x94never mind how long precisely";
  EXPECT_LT(tokenizer->encode(text).size(), text.size() / 2);
  EXPECT_EQ(tokenizer->encode(" whale").size(), 1U);
}

}  // namespace
}  // namespace snug::data
