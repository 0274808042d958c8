#include "data/images/embedded.h"

#include <array>
#include <vector>

#include "support.h"

namespace snug::data {
namespace {

int value_at(const ByteString& pixels, std::size_t y, std::size_t x, std::size_t c = 0) {
  return std::to_integer<int>(pixels[(y * 32 + x) * 3 + c]);
}

TEST(Embedded, IsDescribed) {
  const auto dataset = open_embedded();
  const Description& description = dataset->description();
  EXPECT_EQ(description.name, "embedded");
  EXPECT_EQ(description.channels, 3);
  EXPECT_EQ(description.height, 32);
  EXPECT_EQ(description.width, 32);
  EXPECT_EQ(description.classes, 10);
  EXPECT_EQ(description.class_names[7], "7");
  EXPECT_EQ(description.train_examples, 1500);
  EXPECT_EQ(description.test_examples, 297);
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(description.mean[c], 4.88 * 255 / 16, 2.0);  // the original's mean pixel
    EXPECT_GT(description.std[c], 60);
  }
}

// The first image of the original is a zero: 0,0,5,13,9,1,0,0 / 0,0,13,15,10,15,5,0 / ...
TEST(Embedded, FirstImageIsTheOriginalsEnlarged) {
  const auto dataset = open_embedded();
  ByteString pixels(dataset->description().image_bytes());
  EXPECT_EQ(read_image(*dataset, Split::train, 0, pixels), 0);
  EXPECT_EQ(value_at(pixels, 0, 0), 0);
  // Row 0 lies above the first row's center and is that row. Pixel 4x + 1 lies 1/8 before the center of x: 7/8 of x and 1/8 of x
  // - 1.
  EXPECT_EQ(value_at(pixels, 0, 13), static_cast<int>((13 * 7 + 5) / 8.0 * 255 / 16 + 0.5));
  EXPECT_EQ(value_at(pixels, 0, 14), static_cast<int>((13 * 7 + 9) / 8.0 * 255 / 16 + 0.5));
  // The last row: 0,0,6,13,10,0,0,0.
  EXPECT_EQ(value_at(pixels, 31, 13), static_cast<int>((13 * 7 + 6) / 8.0 * 255 / 16 + 0.5));
  for (std::size_t c = 1; c < 3; ++c) EXPECT_EQ(value_at(pixels, 20, 13, c), value_at(pixels, 20, 13));
}

TEST(Embedded, EveryDigitIsInBothSplitsAboutEquallyOften) {
  const auto dataset = open_embedded();
  ByteString pixels(dataset->description().image_bytes());
  for (const Split split : {Split::train, Split::test}) {
    std::array<int, 10> count{};
    const std::int64_t examples = dataset->description().examples(split);
    for (std::int64_t i = 0; i < examples; ++i) ++count.at(static_cast<std::size_t>(read_image(*dataset, split, i, pixels)));
    for (const int n : count) EXPECT_NEAR(n, static_cast<double>(examples) / 10, static_cast<double>(examples) / 30);
  }
}

}  // namespace
}  // namespace snug::data
