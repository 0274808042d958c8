#include "data/text/word_encoder.h"

#include <algorithm>

namespace snug::data {

std::vector<Token>& WordEncoder::encode(std::string_view word, std::vector<Token>& tokens) {
  tokens.clear();
  merges_.encode(word, scratch_, tokens);
  return tokens;
}

void WordEncoder::encode_short(std::string_view word, const TakeTokens& take) {
  if (word.size() > kLongestCached) return take(encode(word, found_));
  key_.assign(word);
  const auto known = cache_.find(key_);
  if (known != cache_.end()) return take(known->second);
  take(encode(word, found_));
  // Frequent words come back soon after the cache is emptied.
  if (cache_.size() == kMostCached) cache_.clear();
  cache_.emplace(key_, found_);
}

bool WordEncoder::is_final(Token last, std::size_t end) {
  const std::string_view after = std::string_view(word_).substr(end);
  // However the word goes on, it gets a boundary at one of its last `longest_` bytes.
  Token before = -1;
  for (std::size_t back = 0; back < longest_; ++back) {
    const Token next = encode(after.substr(0, after.size() - back), tail_).front();
    if (next == before) continue;
    before = next;
    const std::string both = tokens_[static_cast<std::size_t>(last)] + tokens_[static_cast<std::size_t>(next)];
    encode(both, pair_);
    if (pair_.size() != 2 || pair_[0] != last || pair_[1] != next) return false;
  }
  return true;
}

void WordEncoder::hand_out(const TakeTokens& take) {
  encode(word_, found_);
  std::size_t count = found_.size();
  std::size_t end = word_.size();
  for (std::size_t back = 4 * longest_; back <= word_.size() / 2; back *= 2) {
    while (count > 0 && end + back > word_.size()) end -= tokens_[static_cast<std::size_t>(found_[--count])].size();
    if (count == 0 || !is_final(found_[count - 1], end)) continue;
    take(std::span(found_).first(count));
    word_.erase(0, end);
    window_ = std::max(kWindow, 2 * word_.size());
    return;
  }
  // The next attempt sees more.
  window_ = 2 * word_.size();
}

void WordEncoder::add(std::string_view part, bool is_end, const TakeTokens& take) {
  if (is_end && word_.empty()) return encode_short(part, take);
  while (!part.empty()) {
    const std::size_t fits = std::min(part.size(), window_ - word_.size());
    word_.append(part.substr(0, fits));
    part.remove_prefix(fits);
    if (word_.size() == window_) hand_out(take);
  }
  if (!is_end) return;
  take(encode(word_, found_));
  word_.clear();
  window_ = kWindow;
}

}  // namespace snug::data
