// What kind of character a code point is, as far as tokenizers ask. All of it for Unicode 15.0.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace snug::data {

enum class CharacterClass : std::uint8_t {
  letter,  // \p{L}
  number,  // \p{N}
  space,   // \s, which is White_Space
  other
};

// What is no code point or not assigned is `other`.
CharacterClass class_of(char32_t code);

bool is_punctuation(char32_t code);  // \p{P}
bool is_symbol(char32_t code);       // \p{S}

// Unicode's full mapping to lowercase, of no language in particular: a capital sigma at the end of a word becomes the final one,
// and the dotted capital I two characters.
std::u32string lowercase(std::u32string_view text);

}  // namespace snug::data
