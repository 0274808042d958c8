#include "data/text/token_store.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <vector>

#include "base/error.h"
#include "data/file.h"
#include "data/text/utf8.h"

namespace snug::data {

namespace {

const char* const kWhat = "the temporary file of tokens";
constexpr std::size_t kTogether = 2048;

class ByteTokens : public TokenStore {
 public:
  explicit ByteTokens(TextPart part) : part_(std::move(part)) {}

  std::int64_t size() const override { return part_.bytes(); }

  void read(std::int64_t begin, std::span<Token> tokens) const override {
    std::array<std::byte, kTogether> bytes;
    while (!tokens.empty()) {
      const std::span<std::byte> piece = std::span(bytes).first(std::min(tokens.size(), bytes.size()));
      part_.source->read(part_.begin + begin, piece);
      std::ranges::transform(piece, tokens.begin(), [](std::byte b) { return std::to_integer<Token>(b); });
      begin += static_cast<std::int64_t>(piece.size());
      tokens = tokens.subspan(piece.size());
    }
  }

 private:
  TextPart part_;
};

template <std::unsigned_integral Stored>
class StoredTokens : public TokenStore {
 public:
  void append(std::span<const Token> tokens) {
    for (const Token token : tokens) {
      buffer_.push_back(static_cast<Stored>(token));
      if (buffer_.size() == kBuffered) flush();
    }
    size_ += static_cast<std::int64_t>(tokens.size());
  }
  void finish() {
    flush();
    buffer_ = {};
  }

  std::int64_t size() const override { return size_; }

  void read(std::int64_t begin, std::span<Token> tokens) const override {
    std::array<Stored, kTogether> stored;
    while (!tokens.empty()) {
      const std::span<Stored> piece = std::span(stored).first(std::min(tokens.size(), stored.size()));
      read_at(file_, kWhat, begin * static_cast<std::int64_t>(sizeof(Stored)), std::as_writable_bytes(piece));
      std::ranges::transform(piece, tokens.begin(), [](Stored s) { return static_cast<Token>(s); });
      begin += static_cast<std::int64_t>(piece.size());
      tokens = tokens.subspan(piece.size());
    }
  }

 private:
  static constexpr std::size_t kBuffered = 32'768;

  void flush() {
    write_to_unnamed(file_, kWhat, std::as_bytes(std::span(buffer_)));
    buffer_.clear();
  }

  File file_ = open_unnamed_file();
  std::vector<Stored> buffer_;
  std::int64_t size_ = 0;
};

template <typename Stored>
Encoded encode_as(const TextPart& part, const Tokenizer& tokenizer) {
  auto stored = std::make_unique<StoredTokens<Stored>>();
  const TakeTokens take = [&](std::span<const Token> tokens) { stored->append(tokens); };
  const std::unique_ptr<Encoder> encoder = tokenizer.encoder();
  Utf8Check check;
  read_texts(
      part,
      [&](std::string_view piece) {
        check.feed(piece);
        encoder->feed(piece, take);
      },
      [&](bool is_whole) {
        check.finish();
        encoder->finish(take);
        if (const std::optional<Token> token = tokenizer.end_of_text(); token && is_whole) take(std::span(&*token, 1));
      });
  stored->finish();
  return {.tokens = std::move(stored), .bad_bytes = check.bad_bytes()};
}

}  // namespace

std::unique_ptr<TokenStore> bytes_as_tokens(TextPart part) { return std::make_unique<ByteTokens>(std::move(part)); }

Encoded encode_to_file(const TextPart& part, const Tokenizer& tokenizer) {
  return tokenizer.vocabulary() <= 65'536 ? encode_as<std::uint16_t>(part, tokenizer) : encode_as<std::uint32_t>(part, tokenizer);
}

}  // namespace snug::data
