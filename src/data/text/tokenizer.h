// Texts as numbers. A network reads tokens, and a tokenizer says which tokens a text is. All tokenizers are byte-level: they take
// any bytes, and what they make of them can be turned back into the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace snug::data {

using Token = std::int32_t;
using TakeTokens = std::function<void(std::span<const Token>)>;

// A text on its way to tokens, given piece by piece. However it is cut into pieces, the tokens are those of the whole, and what
// is held back of it does not grow with it.
class Encoder {
 public:
  Encoder() = default;
  virtual ~Encoder() = default;
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  // The next bytes of the text. `take` gets the tokens that nothing after them can change, in any number of calls.
  virtual void feed(std::string_view bytes, const TakeTokens& take) = 0;
  // The end of the text: its remaining tokens. The next feed() begins another text.
  virtual void finish(const TakeTokens& take) = 0;
};

// Immutable: can be used from several threads at once.
class Tokenizer {
 public:
  explicit Tokenizer(std::string name) : name_(std::move(name)) {}
  virtual ~Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // As it was given: "bytes", or the path of a folder or file.
  const std::string& name() const { return name_; }
  // Tokens are the numbers from 0 to vocabulary() - 1.
  virtual std::int64_t vocabulary() const = 0;
  // Whether every byte is the token of its value: then tokens need not be stored beside the text.
  virtual bool is_bytes() const { return false; }
  // What stands between two texts.
  virtual std::optional<Token> end_of_text() const = 0;
  // Of what it does, not of how its files say it: equal fingerprints give equal tokens.
  virtual std::uint64_t fingerprint() const = 0;
  // The bytes that a token stands for; 0 <= token < vocabulary().
  virtual std::string_view bytes_of(Token token) const = 0;
  // The tokenizer must outlive it.
  virtual std::unique_ptr<Encoder> encoder() const = 0;

  std::vector<Token> encode(std::string_view text) const;
  std::string decode(std::span<const Token> tokens) const;

 private:
  std::string name_;
};

// Turns tokens into text as they come. A character of several bytes may be spread over several tokens: it is held back until it
// is complete. Bytes that are not UTF-8 come out as they are.
class Decoder {
 public:
  // `tokenizer` must outlive it.
  explicit Decoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // The text that the token completes; empty while a character is incomplete.
  std::string feed(Token token);
  // What is left: the beginning of a character, or nothing.
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  std::string held_;
};

// `spec` is "bytes" (256 tokens), or the path of a byte-level BPE: a tokenizer.json, a vocab.json with its merges.txt beside it,
// or a folder that has one of these. UserError naming the file and what is wrong with it.
std::unique_ptr<Tokenizer> open_tokenizer(const std::string& spec);

// Every byte is the token of its value; no end of text.
std::unique_ptr<Tokenizer> byte_tokenizer();

}  // namespace snug::data
