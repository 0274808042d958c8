// What kind of character a code point is, as far as pre-tokenizers ask.
#pragma once

#include <cstdint>

namespace snug::data {

enum class CharacterClass : std::uint8_t {
  letter,  // \p{L}
  number,  // \p{N}
  space,   // \s, which is White_Space
  other
};

// For Unicode 15.0; what is no code point or not assigned is `other`.
CharacterClass class_of(char32_t code);

}  // namespace snug::data
