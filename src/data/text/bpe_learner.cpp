#include "data/text/bpe_learner.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/text/bpe_alphabet.h"
#include "data/text/text_source.h"

namespace snug::data {

namespace {

using Pair = std::pair<Token, Token>;
struct PairHash {
  std::size_t operator()(const Pair& pair) const {
    return static_cast<std::size_t>(((static_cast<std::uint64_t>(pair.first) << 32U) | static_cast<std::uint32_t>(pair.second)) *
                                    0x9E3779B97F4A7C15U);
  }
};

constexpr const char* kEndOfText = "<|endoftext|>";

// The distinct words as tokens, while pairs are merged.
class Words {
 public:
  void add(std::vector<Token> tokens, std::int64_t count) {
    const auto number = static_cast<std::uint32_t>(words_.size());
    words_.push_back({.tokens = std::move(tokens), .count = count});
    count_pairs(number, 1);
  }

  // The pair that occurs most often, with how often; nothing where none occurs twice.
  std::optional<Pair> most_frequent() {
    if (queue_.empty()) {
      for (const auto& [pair, place] : pairs_) queue_.push({.count = place.count, .pair = pair});
    }
    while (!queue_.empty()) {
      Candidate candidate = queue_.top();
      queue_.pop();
      const auto place = pairs_.find(candidate.pair);
      if (place == pairs_.end() || place->second.count < 2) continue;
      if (place->second.count == candidate.count) return candidate.pair;
      // It has become rarer since it was queued; where it became more frequent, it was queued again.
      if (place->second.count < candidate.count) queue_.push({.count = place->second.count, .pair = candidate.pair});
    }
    return std::nullopt;
  }

  void merge(const Pair& pair, Token merged) {
    std::vector<std::uint32_t> numbers = std::move(pairs_.at(pair).words);
    std::ranges::sort(numbers);
    const auto repeated = std::ranges::unique(numbers);
    numbers.erase(repeated.begin(), repeated.end());
    grown_.clear();
    for (const std::uint32_t number : numbers) {
      std::vector<Token>& tokens = words_[number].tokens;
      count_pairs(number, -1);
      std::size_t size = 0;
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        const bool is_pair = i + 1 < tokens.size() && tokens[i] == pair.first && tokens[i + 1] == pair.second;
        tokens[size++] = is_pair ? merged : tokens[i];
        if (is_pair) ++i;
      }
      tokens.resize(size);
      count_pairs(number, 1);
    }
    pairs_.erase(pair);
    for (const Pair& grown : grown_) {
      // Only pairs with the new token can be more frequent than before.
      if (grown.first != merged && grown.second != merged) continue;
      if (const auto place = pairs_.find(grown); place != pairs_.end())
        queue_.push({.count = place->second.count, .pair = grown});
    }
  }

 private:
  struct Word {
    std::vector<Token> tokens;
    std::int64_t count = 0;
  };
  struct Place {
    std::int64_t count = 0;
    std::vector<std::uint32_t> words;  // that have or had the pair; some more than once
  };
  struct Candidate {
    std::int64_t count = 0;
    Pair pair;
    // The most frequent is the largest, and of several that with the lower numbers.
    bool operator<(const Candidate& other) const { return count != other.count ? count < other.count : pair > other.pair; }
  };

  void count_pairs(std::uint32_t number, std::int64_t sign) {
    const Word& word = words_[number];
    for (std::size_t i = 0; i + 1 < word.tokens.size(); ++i) {
      const Pair pair{word.tokens[i], word.tokens[i + 1]};
      Place& place = pairs_[pair];
      place.count += sign * word.count;
      if (sign < 0) continue;
      if (place.words.empty() || place.words.back() != number) {
        place.words.push_back(number);
        grown_.push_back(pair);
      }
    }
  }

  std::vector<Word> words_;
  std::unordered_map<Pair, Place, PairHash> pairs_;
  std::priority_queue<Candidate> queue_;
  std::vector<Pair> grown_;
};

}  // namespace

void BpeLearner::feed(std::string_view bytes) {
  splitter_.feed(bytes, [&](std::string_view part, bool is_end) { add(part, is_end); });
}

void BpeLearner::end_text() {
  splitter_.finish([&](std::string_view part, bool is_end) { add(part, is_end); });
}

void BpeLearner::add(std::string_view part, bool is_end) {
  word_ += part;
  std::size_t at = 0;
  for (; word_.size() - at > kLongestWord; at += kLongestWord) count(std::string_view(word_).substr(at, kLongestWord));
  word_.erase(0, at);
  if (!is_end) return;
  if (!word_.empty()) count(word_);
  word_.clear();
}

void BpeLearner::count(std::string_view word) {
  ++words_[std::string(word)];
  if (words_.size() <= most_words_) return;
  for (std::int64_t rare = 1; words_.size() > most_words_ / 2; ++rare)
    std::erase_if(words_, [&](const auto& entry) { return entry.second <= rare; });
}

BpeDefinition BpeLearner::learn(std::int64_t vocabulary) const {
  BpeDefinition definition;
  std::array<int, 256> order{};
  std::iota(order.begin(), order.end(), 0);
  const auto spelled = [](int byte) { return spell_bytes(std::string(1, static_cast<char>(byte))); };
  // UTF-8 sorts as its code points do.
  std::ranges::sort(order, [&](int a, int b) { return spelled(a) < spelled(b); });
  for (const int byte : order) {
    definition.bytes[static_cast<std::size_t>(byte)] = static_cast<Token>(definition.tokens.size());
    definition.tokens.emplace_back(1, static_cast<char>(byte));
  }
  const auto least = static_cast<std::int64_t>(definition.tokens.size()) + 1;
  if (vocabulary < least)
    throw_user_error("a vocabulary of {} is too small: the 256 bytes and the end of a text make {}", vocabulary, least);

  std::unordered_map<std::string, Token> by_text;
  Words words;
  for (const auto& [word, count] : words_) {
    std::vector<Token> tokens;
    for (const char c : word) tokens.push_back(definition.bytes[static_cast<unsigned char>(c)]);
    words.add(std::move(tokens), count);
  }
  while (static_cast<std::int64_t>(definition.tokens.size()) + 1 < vocabulary) {
    const std::optional<Pair> pair = words.most_frequent();
    if (!pair) break;
    std::string text =
        definition.tokens[static_cast<std::size_t>(pair->first)] + definition.tokens[static_cast<std::size_t>(pair->second)];
    // Runs of one letter can be cut into the same token in two ways.
    const auto [known, is_new] = by_text.try_emplace(text, static_cast<Token>(definition.tokens.size()));
    const Token merged = known->second;
    if (is_new) definition.tokens.push_back(std::move(text));
    definition.merges.push_back({.left = pair->first, .right = pair->second, .merged = merged});
    words.merge(*pair, merged);
  }
  definition.end_of_text = static_cast<Token>(definition.tokens.size());
  definition.added.push_back({.text = kEndOfText, .token = *definition.end_of_text});
  definition.tokens.emplace_back(kEndOfText);
  return definition;
}

BpeDefinition learn_bpe(const std::string& spec, std::int64_t vocabulary) {
  BpeLearner learner;
  read_texts(
      open_text_parts(spec).train, [&](std::string_view piece) { learner.feed(piece); },
      [&](bool /*is_whole*/) { learner.end_text(); });
  return learner.learn(vocabulary);
}

std::string print_tokenizer_json(const BpeDefinition& definition) {
  using Json = nlohmann::ordered_json;
  const auto text_of = [&](Token token) { return spell_bytes(definition.tokens[static_cast<std::size_t>(token)]); };
  // Added tokens stand for their own text; another token never has their number.
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < definition.tokens.size(); ++i) texts.push_back(text_of(static_cast<Token>(i)));
  Json added = Json::array();
  for (const AddedToken& token : definition.added) {
    texts[static_cast<std::size_t>(token.token)] = token.text;
    added.push_back({{"id", token.token},
                     {"content", token.text},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  Json vocab = Json::object();
  // An ordered object looks every key up when it is added one by one.
  auto& entries = vocab.get_ref<Json::object_t&>();
  for (std::size_t i = 0; i < texts.size(); ++i) entries.emplace_back(std::move(texts[i]), i);
  Json merges = Json::array();
  for (const Merge& merge : definition.merges) merges.push_back({text_of(merge.left), text_of(merge.right)});
  const Json byte_level{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  const Json json{{"version", "1.0"},
                  {"truncation", nullptr},
                  {"padding", nullptr},
                  {"added_tokens", added},
                  {"normalizer", nullptr},
                  {"pre_tokenizer", byte_level},
                  {"post_processor", nullptr},
                  {"decoder", byte_level},
                  {"model",
                   {{"type", "BPE"},
                    {"dropout", nullptr},
                    {"unk_token", nullptr},
                    {"continuing_subword_prefix", nullptr},
                    {"end_of_word_suffix", nullptr},
                    {"fuse_unk", false},
                    {"byte_fallback", false},
                    {"ignore_merges", false},
                    {"vocab", vocab},
                    {"merges", merges}}}};
  return json.dump(2) + "\n";
}

}  // namespace snug::data
