#include "data/text/tokenizer.h"

#include "data/dataset.h"
#include "data/support.h"

namespace snug::data {
namespace {

TEST(ByteTokenizer, EveryByteIsTheTokenOfItsValue) {
  const auto tokenizer = open_tokenizer("bytes");
  EXPECT_EQ(tokenizer->name(), "bytes");
  EXPECT_EQ(tokenizer->vocabulary(), 256);
  EXPECT_EQ(tokenizer->end_of_text(), std::nullopt);
  std::string text;
  for (int i = 0; i < 3000; ++i) text += static_cast<char>(i * 7);
  const std::vector<Token> tokens = tokenizer->encode(text);
  ASSERT_EQ(tokens.size(), text.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) EXPECT_EQ(tokens[i], static_cast<unsigned char>(text[i]));
  EXPECT_EQ(tokenizer->decode(tokens), text);
}

TEST(Decoder, HoldsACharacterBackUntilItIsComplete) {
  const auto tokenizer = byte_tokenizer();
  Decoder decoder(*tokenizer);
  std::vector<std::string> pieces;
  for (const Token token : tokenizer->encode("a\xE2\x82\xAC\xFF\xC3z")) pieces.push_back(decoder.feed(token));
  EXPECT_EQ(pieces, (std::vector<std::string>{"a", "", "", "\xE2\x82\xAC", "\xFF", "", "\xC3z"}));
  EXPECT_EQ(decoder.finish(), "");
  EXPECT_EQ(decoder.feed(0xE2), "");
  EXPECT_EQ(decoder.finish(), "\xE2");
  EXPECT_EQ(decoder.finish(), "");
}

}  // namespace
}  // namespace snug::data
