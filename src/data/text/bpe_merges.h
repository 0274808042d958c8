// Byte-pair encoding of one word (Sennrich et al., "Neural machine translation of rare words with subword units", ACL 2016).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "data/text/tokenizer.h"

namespace snug::data {

// A merge replaces two neighboring tokens by one. Merges come in the order of their ranks: the first has the lowest and goes
// first.
struct Merge {
  Token left = 0;
  Token right = 0;
  Token merged = 0;

  friend bool operator==(const Merge&, const Merge&) = default;
};

class BpeMerges {
 public:
  // `bytes` are the tokens of the 256 bytes. No two merges have the same left and right.
  BpeMerges(const std::array<Token, 256>& bytes, std::span<const Merge> merges);

  // What encode() needs beside its result; kept from word to word, so that it rarely allocates.
  struct Scratch {
    struct Symbol {
      Token token = 0;
      std::int32_t next = -1;  // -1: the last of the word
      std::int32_t previous = -1;
    };
    struct Candidate {
      std::uint32_t rank = 0;
      std::int32_t at = 0;  // the symbol on the left
      Token left = 0;       // the pair that was seen there: outdated when it is another by now
      Token right = 0;
    };
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
  };

  // Appends the tokens of a word of at most 2^31 - 1 bytes: of all pairs that can be merged the one of the lowest rank is, the
  // leftmost of several, until none can. O(n log n).
  void encode(std::string_view word, Scratch& scratch, std::vector<Token>& tokens) const;

 private:
  struct Slot {
    std::uint64_t pair = kNoPair;
    std::uint32_t rank = 0;
    Token merged = 0;
  };
  static constexpr std::uint64_t kNoPair = ~std::uint64_t{0};

  static std::uint64_t pair_of(Token left, Token right) {
    return (static_cast<std::uint64_t>(left) << 32U) | static_cast<std::uint32_t>(right);
  }
  std::size_t first_slot(std::uint64_t pair) const { return static_cast<std::size_t>((pair * 0x9E3779B97F4A7C15U) >> shift_); }
  // nullptr: they are not merged.
  const Slot* find(Token left, Token right) const;
  void push(std::int32_t at, Scratch& scratch) const;

  std::array<Token, 256> bytes_;
  std::vector<Slot> slots_;  // open addressing, at most half full
  unsigned shift_ = 63;
};

}  // namespace snug::data
