// GPT-2's pre-tokenizer: where a text is cut into words before each is encoded by itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace snug::data {

// Cuts a text, given piece by piece, as the regular expression
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// does. A byte that is not UTF-8 counts as a character that is neither letter, number nor space.
class WordSplitter {
 public:
  // The pattern above.
  static const std::string_view kPattern;
  // Of a word that goes on, this much and more is handed out as a part, so that what is held back does not grow with it.
  static constexpr std::size_t kLeastPart = 4096;

  // Gets the words in order: `bytes` of one, and whether these are its last. They may be none when it has ended after its last
  // part.
  using Take = std::function<void(std::string_view bytes, bool is_end)>;

  void feed(std::string_view bytes, const Take& take);
  // The end of the text. The next feed() begins another.
  void finish(const Take& take);

 private:
  enum class State : std::uint8_t {
    begin,        // no character of the word is there
    apostrophe,   // ' alone, which may begin a contraction
    contraction,  // 'r, 'v or 'l
    letters,      // these four may go on
    numbers,
    others,
    spaces  // the last of them, at last_space_, may belong to the next word
  };

  // Looks at all whole characters in text_.
  void scan(bool is_end, const Take& take);
  // The character at at_, of `size` bytes.
  void see(char32_t code, std::size_t size, bool is_bad, const Take& take);
  // Ends the word before `end`, where the next begins.
  void cut(std::size_t end, const Take& take);
  void hand_out_part(const Take& take);

  std::string text_;            // what is not handed out
  std::size_t begin_ = 0;       // of the word in it
  std::size_t at_ = 0;          // the next character
  std::size_t last_space_ = 0;  // where it begins
  State state_ = State::begin;
  bool has_parts_ = false;  // of the word, that were handed out
};

}  // namespace snug::data
