#include "data/text/bpe_tokenizer.h"

#include <algorithm>
#include <array>

#include "base/checksum.h"
#include "base/error.h"
#include "data/text/word_encoder.h"
#include "data/text/words.h"

namespace snug::data {

namespace {

// Where added tokens begin in a text.
class AddedTokens {
 public:
  explicit AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
    // The longest of several that begin at one place is meant.
    std::ranges::stable_sort(tokens_, std::ranges::greater(), [](const AddedToken& token) { return token.text.size(); });
    for (const AddedToken& token : tokens_) begins_[static_cast<unsigned char>(token.text.front())] = true;
  }

  struct Found {
    std::size_t at = 0;                 // the text before it has none
    const AddedToken* token = nullptr;  // nullptr: the text from `at` on is not decided, or has ended
  };
  Found find(std::string_view text, bool is_end) const {
    std::size_t at = 0;
    for (; at < text.size(); ++at) {
      if (!begins_[static_cast<unsigned char>(text[at])]) continue;
      const std::string_view rest = text.substr(at);
      for (const AddedToken& token : tokens_) {
        if (rest.starts_with(token.text)) return {.at = at, .token = &token};
        if (!is_end && std::string_view(token.text).starts_with(rest)) return {.at = at};
      }
    }
    return {.at = at};
  }

 private:
  std::vector<AddedToken> tokens_;
  std::array<bool, 256> begins_{};
};

class BpeTokenizer : public Tokenizer {
 public:
  BpeTokenizer(BpeDefinition definition, std::string name)
      : Tokenizer(std::move(name)),
        tokens_(std::move(definition.tokens)),
        merges_(definition.bytes, definition.merges),
        added_(definition.added),
        end_of_text_(definition.end_of_text) {
    for (const Merge& merge : definition.merges)
      longest_ = std::max(longest_, tokens_[static_cast<std::size_t>(merge.merged)].size());
    fingerprint_ = fingerprint_of(definition);
  }

  std::int64_t vocabulary() const override { return static_cast<std::int64_t>(tokens_.size()); }
  std::optional<Token> end_of_text() const override { return end_of_text_; }
  std::uint64_t fingerprint() const override { return fingerprint_; }
  std::string_view bytes_of(Token token) const override {
    SNUG_CHECK(token >= 0 && token < vocabulary(), "token {} of {}", token, vocabulary());
    return tokens_[static_cast<std::size_t>(token)];
  }
  std::unique_ptr<Encoder> encoder() const override;

 private:
  class TextEncoder;

  std::uint64_t fingerprint_of(const BpeDefinition& definition) const {
    Crc64 checksum;
    const auto add = [&](std::string_view bytes) { checksum.update(std::as_bytes(std::span(bytes))); };
    const auto add_token = [&](Token token) { checksum.update(std::as_bytes(std::span(&token, 1))); };
    for (const std::string& token : tokens_) {
      add_token(static_cast<Token>(token.size()));
      add(token);
    }
    for (const Merge& merge : definition.merges) {
      for (const Token token : {merge.left, merge.right, merge.merged}) add_token(token);
    }
    for (const AddedToken& token : definition.added) add_token(token.token);
    return checksum.value();
  }

  std::vector<std::string> tokens_;
  BpeMerges merges_;
  AddedTokens added_;
  std::optional<Token> end_of_text_;
  std::size_t longest_ = 1;  // bytes that a merge makes
  std::uint64_t fingerprint_ = 0;
};

class BpeTokenizer::TextEncoder : public Encoder {
 public:
  explicit TextEncoder(const BpeTokenizer& tokenizer)
      : added_(tokenizer.added_), words_(tokenizer.merges_, tokenizer.tokens_, tokenizer.longest_) {}

  void feed(std::string_view bytes, const TakeTokens& take) override {
    constexpr std::size_t kTogether = 65'536;
    while (!bytes.empty()) {
      text_.append(bytes.substr(0, kTogether));
      bytes.remove_prefix(std::min(bytes.size(), kTogether));
      encode(/*is_end=*/false, take);
    }
  }

  void finish(const TakeTokens& take) override {
    encode(/*is_end=*/true, take);
    end_text(take);
  }

 private:
  void encode(bool is_end, const TakeTokens& take) {
    const WordSplitter::Take take_word = [&](std::string_view part, bool is_word_end) { words_.add(part, is_word_end, take); };
    std::string_view text = text_;
    for (;;) {
      const AddedTokens::Found found = added_.find(text, is_end);
      splitter_.feed(text.substr(0, found.at), take_word);
      text.remove_prefix(found.at);
      if (found.token == nullptr) break;
      end_text(take);
      take(std::span(&found.token->token, 1));
      text.remove_prefix(found.token->text.size());
    }
    text_.erase(0, text_.size() - text.size());
  }

  void end_text(const TakeTokens& take) {
    splitter_.finish([&](std::string_view part, bool is_word_end) { words_.add(part, is_word_end, take); });
  }

  const AddedTokens& added_;
  std::string text_;  // which may be the beginning of an added token
  WordSplitter splitter_;
  WordEncoder words_;
};

std::unique_ptr<Encoder> BpeTokenizer::encoder() const { return std::make_unique<TextEncoder>(*this); }

}  // namespace

std::unique_ptr<Tokenizer> bpe_tokenizer(BpeDefinition definition, std::string name) {
  return std::make_unique<BpeTokenizer>(std::move(definition), std::move(name));
}

}  // namespace snug::data
