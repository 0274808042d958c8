// The tokens of a text, on disk.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "data/text/text_source.h"
#include "data/text/tokenizer.h"

namespace snug::data {

class TokenStore {
 public:
  TokenStore() = default;
  virtual ~TokenStore() = default;
  TokenStore(const TokenStore&) = delete;
  TokenStore& operator=(const TokenStore&) = delete;

  virtual std::int64_t size() const = 0;
  // Fills `tokens` with those from `begin` on, from any thread.
  virtual void read(std::int64_t begin, std::span<Token> tokens) const = 0;
};

// Each byte is a token, read where it lies.
std::unique_ptr<TokenStore> bytes_as_tokens(TextPart part);

struct Encoded {
  std::unique_ptr<TokenStore> tokens;
  std::int64_t bad_bytes = 0;  // that are not UTF-8
};
// Encodes the texts of the part once, into an unnamed temporary file (in $TMPDIR) with 2 bytes per token, or 4 for vocabularies
// of more than 65,536. Every text is followed by the end-of-text token where there is one; a text that the part cuts off is not.
Encoded encode_to_file(const TextPart& part, const Tokenizer& tokenizer);

}  // namespace snug::data
