#include "data/text/words.h"

#include <algorithm>

#include "data/text/unicode.h"
#include "data/text/utf8.h"

namespace snug::data {

const std::string_view WordSplitter::kPattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

void WordSplitter::cut(std::size_t end, const Take& take) {
  take(std::string_view(text_).substr(begin_, end - begin_), /*is_end=*/true);
  begin_ = end;
  has_parts_ = false;
  state_ = State::begin;
}

void WordSplitter::see(char32_t code, std::size_t size, bool is_bad, const Take& take) {
  const CharacterClass kind = is_bad ? CharacterClass::other : class_of(code);
  const State run = kind == CharacterClass::letter   ? State::letters
                    : kind == CharacterClass::number ? State::numbers
                    : kind == CharacterClass::space  ? State::spaces
                                                     : State::others;
  switch (state_) {
    case State::begin:
      break;
    case State::letters:
    case State::numbers:
    case State::others:
      if (run != state_) cut(at_, take);
      break;
    case State::apostrophe:
      if (code == 's' || code == 't' || code == 'm' || code == 'd') {
        at_ += size;
        return cut(at_, take);
      }
      if (code == 'r' || code == 'v' || code == 'l') {
        state_ = State::contraction;
        at_ += size;
        return;
      }
      if (run != State::others) cut(at_, take);
      break;
    case State::contraction: {
      const char second = text_[at_ - 1];
      if (code == (second == 'l' ? U'l' : U'e')) {
        at_ += size;
        return cut(at_, take);
      }
      // No contraction: ' is a word, and another has begun with the letter.
      cut(at_ - 1, take);
      state_ = State::letters;
      if (run != State::letters) cut(at_, take);
      break;
    }
    case State::spaces:
      if (run == State::spaces) break;
      // All spaces but the last are a word. The last begins the next word if it is U+0020, else it is a word, too.
      if (last_space_ > begin_ || has_parts_) cut(last_space_, take);
      if (text_[last_space_] != ' ') cut(at_, take);
      break;
  }
  const bool is_first = state_ == State::begin && begin_ == at_;
  state_ = is_first && code == U'\'' && !is_bad ? State::apostrophe : run;
  if (state_ == State::spaces) last_space_ = at_;
  at_ += size;
}

void WordSplitter::scan(bool is_end, const Take& take) {
  while (at_ < text_.size()) {
    const Character character = first_character(std::string_view(text_).substr(at_));
    const bool is_whole = character.kind == Character::Kind::whole;
    if (character.kind == Character::Kind::incomplete && !is_end) return;
    see(character.code, is_whole ? character.bytes : 1, !is_whole, take);
  }
}

void WordSplitter::hand_out_part(const Take& take) {
  // Of an apostrophe and a contraction there are only two bytes.
  const std::size_t end = state_ == State::spaces ? last_space_ : at_;
  if (end < begin_ + kLeastPart) return;
  take(std::string_view(text_).substr(begin_, end - begin_), /*is_end=*/false);
  begin_ = end;
  has_parts_ = true;
}

void WordSplitter::feed(std::string_view bytes, const Take& take) {
  constexpr std::size_t kTogether = 65'536;
  while (!bytes.empty()) {
    text_.append(bytes.substr(0, kTogether));
    bytes.remove_prefix(std::min(bytes.size(), kTogether));
    scan(/*is_end=*/false, take);
    hand_out_part(take);
    text_.erase(0, begin_);
    at_ -= begin_;
    last_space_ -= std::min(last_space_, begin_);
    begin_ = 0;
  }
}

void WordSplitter::finish(const Take& take) {
  scan(/*is_end=*/true, take);
  if (state_ == State::contraction) {
    cut(at_ - 1, take);
    state_ = State::letters;
  }
  if (at_ > begin_ || has_parts_) cut(at_, take);
  text_.clear();
  begin_ = at_ = last_space_ = 0;
  state_ = State::begin;
}

}  // namespace snug::data
