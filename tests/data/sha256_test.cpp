#include "data/sha256.h"

#include <string>
#include <string_view>

#include "support.h"

namespace snug::data {
namespace {

std::string sum_of(std::string_view text) {
  Sha256 sum;
  sum.add(std::as_bytes(std::span(text)));
  return sum.finish();
}

// The examples of FIPS 180-4 and of NIST's test vectors.
TEST(Sha256, KnownSums) {
  EXPECT_EQ(sum_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sum_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sum_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sum_of(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesGiveTheSumOfTheWhole) {
  const std::string text(300, 'x');
  for (std::size_t first = 0; first <= text.size(); ++first) {
    Sha256 sum;
    sum.add(std::as_bytes(std::span(text).first(first)));
    sum.add(std::as_bytes(std::span(text).subspan(first)));
    ASSERT_EQ(sum.finish(), sum_of(text)) << first;
  }
}

TEST(Sha256, OfAFile) {
  const TestFolder folder;
  const std::string text(200'000, 'q');
  write_text(folder.path() / "f", text);
  EXPECT_EQ(sha256_of_file(folder.path() / "f"), sum_of(text));
}

}  // namespace
}  // namespace snug::data
