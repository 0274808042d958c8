#include "data/text/bpe_merges.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.h"

namespace snug::data {

namespace {

// The heap's top is the lowest rank, the leftmost of several.
bool comes_later(const BpeMerges::Scratch::Candidate& a, const BpeMerges::Scratch::Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
}

}  // namespace

BpeMerges::BpeMerges(const std::array<Token, 256>& bytes, std::span<const Merge> merges) : bytes_(bytes) {
  const std::size_t size = std::bit_ceil(std::max<std::size_t>(2 * merges.size(), 2));
  slots_.resize(size);
  shift_ = 64U - static_cast<unsigned>(std::countr_zero(size));
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const std::uint64_t pair = pair_of(merges[rank].left, merges[rank].right);
    std::size_t at = first_slot(pair);
    while (slots_[at].pair != kNoPair) {
      SNUG_CHECK(slots_[at].pair != pair, "merge {} is there twice", rank);
      at = (at + 1) % size;
    }
    slots_[at] = {.pair = pair, .rank = static_cast<std::uint32_t>(rank), .merged = merges[rank].merged};
  }
}

const BpeMerges::Slot* BpeMerges::find(Token left, Token right) const {
  const std::uint64_t pair = pair_of(left, right);
  for (std::size_t at = first_slot(pair);; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].pair == pair) return &slots_[at];
    if (slots_[at].pair == kNoPair) return nullptr;
  }
}

void BpeMerges::push(std::int32_t at, Scratch& scratch) const {
  const Scratch::Symbol& left = scratch.symbols[static_cast<std::size_t>(at)];
  if (left.next < 0) return;
  const Token right = scratch.symbols[static_cast<std::size_t>(left.next)].token;
  const Slot* slot = find(left.token, right);
  if (slot == nullptr) return;
  scratch.heap.push_back({.rank = slot->rank, .at = at, .left = left.token, .right = right});
  std::ranges::push_heap(scratch.heap, comes_later);
}

void BpeMerges::encode(std::string_view word, Scratch& scratch, std::vector<Token>& tokens) const {
  SNUG_CHECK(word.size() <= std::numeric_limits<std::int32_t>::max(), "a word of {} bytes", word.size());
  const auto size = static_cast<std::int32_t>(word.size());
  std::vector<Scratch::Symbol>& symbols = scratch.symbols;
  symbols.resize(word.size());
  scratch.heap.clear();
  for (std::int32_t i = 0; i < size; ++i) {
    const auto at = static_cast<std::size_t>(i);
    symbols[at] = {.token = bytes_[static_cast<unsigned char>(word[at])], .next = i + 1 < size ? i + 1 : -1, .previous = i - 1};
  }
  for (std::int32_t i = 0; i < size; ++i) push(i, scratch);
  // A symbol that is merged into its left neighbor is never looked at again: nothing links to it, and its token fits no
  // candidate.
  constexpr Token kMergedAway = -1;
  while (!scratch.heap.empty()) {
    std::ranges::pop_heap(scratch.heap, comes_later);
    const Scratch::Candidate candidate = scratch.heap.back();
    scratch.heap.pop_back();
    Scratch::Symbol& left = symbols[static_cast<std::size_t>(candidate.at)];
    if (left.token != candidate.left || left.next < 0) continue;
    Scratch::Symbol& right = symbols[static_cast<std::size_t>(left.next)];
    if (right.token != candidate.right) continue;
    left.token = find(candidate.left, candidate.right)->merged;
    left.next = right.next;
    right.token = kMergedAway;
    if (left.next >= 0) symbols[static_cast<std::size_t>(left.next)].previous = candidate.at;
    if (left.previous >= 0) push(left.previous, scratch);
    push(candidate.at, scratch);
  }
  for (std::int32_t i = size > 0 ? 0 : -1; i >= 0; i = symbols[static_cast<std::size_t>(i)].next)
    tokens.push_back(symbols[static_cast<std::size_t>(i)].token);
}

}  // namespace snug::data
