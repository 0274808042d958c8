#include "data/text/tokenizer.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "data/dataset.h"
#include "data/text/utf8.h"

namespace snug::data {

namespace {

constexpr std::array<char, 256> kBytes = [] {
  std::array<char, 256> bytes{};
  for (unsigned i = 0; i < 256; ++i) bytes[i] = static_cast<char>(i);
  return bytes;
}();

class ByteEncoder : public Encoder {
 public:
  void feed(std::string_view bytes, const TakeTokens& take) override {
    std::array<Token, 1024> tokens;
    while (!bytes.empty()) {
      const std::string_view piece = bytes.substr(0, tokens.size());
      std::ranges::transform(piece, tokens.begin(), [](char c) { return static_cast<unsigned char>(c); });
      take(std::span(tokens).first(piece.size()));
      bytes.remove_prefix(piece.size());
    }
  }
  void finish(const TakeTokens& /*take*/) override {}
};

class ByteTokenizer : public Tokenizer {
 public:
  ByteTokenizer() : Tokenizer("bytes") {}

  std::int64_t vocabulary() const override { return 256; }
  bool is_bytes() const override { return true; }
  std::optional<Token> end_of_text() const override { return std::nullopt; }
  std::uint64_t fingerprint() const override { return fingerprint_of("bytes"); }
  std::string_view bytes_of(Token token) const override {
    SNUG_CHECK(token >= 0 && token < 256, "token {} of 256", token);
    return {&kBytes[static_cast<std::size_t>(token)], 1};
  }
  std::unique_ptr<Encoder> encoder() const override { return std::make_unique<ByteEncoder>(); }
};

}  // namespace

std::vector<Token> Tokenizer::encode(std::string_view text) const {
  std::vector<Token> tokens;
  const TakeTokens take = [&](std::span<const Token> more) { tokens.insert(tokens.end(), more.begin(), more.end()); };
  const std::unique_ptr<Encoder> encoder = this->encoder();
  encoder->feed(text, take);
  encoder->finish(take);
  return tokens;
}

std::string Tokenizer::decode(std::span<const Token> tokens) const {
  std::string text;
  for (const Token token : tokens) text += bytes_of(token);
  return text;
}

std::string Decoder::feed(Token token) {
  held_ += tokenizer_.bytes_of(token);
  std::string text = held_.substr(0, begin_of_incomplete_end(held_));
  held_.erase(0, text.size());
  return text;
}

std::string Decoder::finish() { return std::exchange(held_, {}); }

std::unique_ptr<Tokenizer> byte_tokenizer() { return std::make_unique<ByteTokenizer>(); }

std::unique_ptr<Tokenizer> open_tokenizer(const std::string& spec) {
  if (spec == "bytes") return byte_tokenizer();
  throw_user_error("tokenizer '{}' is not known: give bytes", spec);
}

}  // namespace snug::data
