#include "data/images/image.h"

#include <vector>

#include "memory_source.h"
#include "pictures.h"
#include "support.h"
#include "support/messages.h"

namespace snug::data {
namespace {

struct Picture : RowSink {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::vector<int> samples;
  std::int64_t rows = 0;

  void begin(std::int64_t w, std::int64_t h) override {
    width = w;
    height = h;
  }
  void row(std::span<const std::byte> pixels) override {
    EXPECT_EQ(pixels.size(), static_cast<std::size_t>(width) * 3);
    for (const std::byte b : pixels) samples.push_back(std::to_integer<int>(b));
    ++rows;
  }
};

Picture decoded(const ByteString& bytes, const ImageLimits& limits = {}) {
  MemorySource source(bytes);
  Picture picture;
  decode_image(source, "p.png", picture, limits);
  EXPECT_EQ(picture.rows, picture.height);
  return picture;
}

std::string refusal(const ByteString& bytes, const ImageLimits& limits = {}) {
  const std::string error = user_error_of([&] { decoded(bytes, limits); });
  EXPECT_EQ(error.find("p.png"), 0U) << error;
  return error;
}

void expect_has(const std::string& text, const std::string& part) { EXPECT_NE(text.find(part), std::string::npos) << text; }

std::vector<std::uint8_t> gradient(std::uint32_t width, std::uint32_t height, std::uint32_t channels) {
  std::vector<std::uint8_t> samples;
  for (std::uint32_t y = 0; y < height; ++y) {
    for (std::uint32_t x = 0; x < width; ++x) {
      for (std::uint32_t c = 0; c < channels; ++c)
        samples.push_back(static_cast<std::uint8_t>(x * 200 / width + y * 40 / height + c * 5));
    }
  }
  return samples;
}

std::vector<int> as_ints(const std::vector<std::uint8_t>& samples) { return {samples.begin(), samples.end()}; }

// Every color three times.
std::vector<int> gray_as_rgb(const std::vector<std::uint8_t>& samples) {
  std::vector<int> result;
  for (const std::uint8_t sample : samples) result.insert(result.end(), 3, sample);
  return result;
}

void set_32(ByteString& bytes, std::size_t at, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<std::byte>(value >> (24 - 8 * i));
}

std::uint32_t crc_of(std::span<const std::byte> bytes) {
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const std::byte b : bytes) {
    crc ^= std::to_integer<std::uint32_t>(b);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ (crc % 2 != 0 ? 0xEDB88320U : 0U);
  }
  return ~crc;
}

// A PNG's header lies at byte 16: width, height; its checksum at 29.
ByteString with_png_size(ByteString bytes, std::uint32_t width, std::uint32_t height) {
  set_32(bytes, 16, width);
  set_32(bytes, 20, height);
  set_32(bytes, 29, crc_of(std::span(bytes).subspan(12, 17)));
  return bytes;
}

TEST(Image, PngInRgb) {
  const auto samples = gradient(7, 5, 3);
  const Picture picture = decoded(make_png(7, 5, samples));
  EXPECT_EQ(picture.width, 7);
  EXPECT_EQ(picture.height, 5);
  EXPECT_EQ(picture.samples, as_ints(samples));
}

TEST(Image, PngInterlacedIsTheSame) {
  const auto samples = gradient(19, 13, 3);
  EXPECT_EQ(decoded(make_png(19, 13, samples, {.interlaced = true})).samples, as_ints(samples));
  EXPECT_EQ(decoded(make_png(1, 1, {1, 2, 3}, {.interlaced = true})).samples, (std::vector<int>{1, 2, 3}));
}

TEST(Image, PngInGrayBecomesRgb) {
  const auto samples = gradient(6, 4, 1);
  EXPECT_EQ(decoded(make_png(6, 4, samples, {.kind = PngKind::gray})).samples, gray_as_rgb(samples));
  EXPECT_EQ(decoded(make_png(3, 1, {0, 1, 0}, {.kind = PngKind::gray_1_bit})).samples, gray_as_rgb({0, 255, 0}));
}

TEST(Image, PngWithSixteenBitsBecomesEight) {
  const auto samples = gradient(6, 4, 3);
  EXPECT_EQ(decoded(make_png(6, 4, samples, {.kind = PngKind::rgb_16_bit})).samples, as_ints(samples));
}

TEST(Image, PngPaletteBecomesRgb) {
  EXPECT_EQ(decoded(make_png(2, 1, {0, 63}, {.kind = PngKind::palette})).samples, (std::vector<int>{0, 0, 255, 63, 126, 192}));
}

TEST(Image, TransparentPixelsLieOnWhite) {
  EXPECT_EQ(decoded(make_png(3, 1, {10, 20, 30, 0, 10, 20, 30, 255, 100, 0, 200, 51}, {.kind = PngKind::rgba})).samples,
            (std::vector<int>{255, 255, 255, 10, 20, 30, 224, 204, 244}));
  EXPECT_EQ(decoded(make_png(2, 1, {10, 0, 10, 255}, {.kind = PngKind::gray_alpha})).samples,
            (std::vector<int>{255, 255, 255, 10, 10, 10}));
  EXPECT_EQ(decoded(make_png(2, 1, {0, 5}, {.kind = PngKind::palette_transparent})).samples,
            (std::vector<int>{255, 255, 255, 5, 10, 250}));
}

void expect_near(const std::vector<int>& values, const std::vector<int>& expected, int tolerance) {
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], expected[i], tolerance) << i;
}

TEST(Image, JpegBaselineAndProgressiveAndGray) {
  const auto samples = gradient(40, 24, 3);
  expect_near(decoded(make_jpeg(40, 24, samples)).samples, as_ints(samples), 8);
  expect_near(decoded(make_jpeg(40, 24, samples, {.progressive = true})).samples, as_ints(samples), 8);
  const auto gray = gradient(33, 17, 1);
  expect_near(decoded(make_jpeg(33, 17, gray, {.kind = JpegKind::gray})).samples, gray_as_rgb(gray), 8);
}

TEST(Image, JpegInCmykIsRefused) { expect_has(refusal(make_jpeg(8, 8, gradient(8, 8, 4), {.kind = JpegKind::cmyk})), "CMYK"); }

TEST(Image, OtherKindsAndEmptyFilesAreRefused) {
  expect_has(refusal({}), "is empty");
  expect_has(refusal({std::byte{0x89}}), "neither a PNG nor a JPEG");
  expect_has(refusal(ByteString(100, std::byte{'G'})), "neither a PNG nor a JPEG");
  expect_has(refusal(ByteString(100, std::byte{0})), "neither a PNG nor a JPEG");
}

// Cut anywhere, an image is refused: no made-up pixels.
TEST(Image, CutImagesAreRefusedWhereverTheyAreCut) {
  const std::vector<ByteString> pictures = {
      make_png(20, 20, gradient(20, 20, 3)), make_png(20, 20, gradient(20, 20, 3), {.interlaced = true}),
      make_jpeg(32, 32, gradient(32, 32, 3)), make_jpeg(32, 32, gradient(32, 32, 3), {.progressive = true}),
      make_jpeg(32, 32, gradient(32, 32, 1), {.kind = JpegKind::gray})};
  for (const ByteString& whole : pictures) {
    decoded(whole);
    for (std::size_t length = 8; length < whole.size(); ++length) {
      expect_has(refusal(ByteString(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length))), "cut short or corrupt");
    }
  }
}

TEST(Image, ChangedByteOfAPngIsFound) {
  const ByteString whole = make_png(20, 20, gradient(20, 20, 3));
  for (std::size_t at = 8; at < whole.size(); ++at) {
    ByteString damaged = whole;
    damaged[at] ^= std::byte{0x10};
    refusal(damaged);
  }
}

// A JPEG has no checksum: some damage looks like another picture. None may do worse than be refused.
TEST(Image, ChangedByteOfAJpegIsRefusedOrDecoded) {
  for (const bool progressive : {false, true}) {
    const ByteString whole = make_jpeg(32, 32, gradient(32, 32, 3), {.progressive = progressive});
    int refused = 0;
    for (std::size_t at = 2; at < whole.size(); ++at) {
      for (const int mask : {0x01, 0x80, 0xFF}) {
        ByteString damaged = whole;
        damaged[at] ^= static_cast<std::byte>(mask);
        try {
          decoded(damaged, {.pixels = 10'000'000});
        } catch (const UserError&) {
          ++refused;
        }
      }
    }
    EXPECT_GT(refused, 100);
  }
}

TEST(Image, HugeSizesAreRefusedBeforeAnythingIsAllocated) {
  const ByteString png = make_png(4, 4, gradient(4, 4, 3));
  expect_has(refusal(with_png_size(png, 0x7FFFFFFF, 0x7FFFFFFF)), "2147483647x2147483647 pixels");
  expect_has(refusal(with_png_size(png, 30'001, 1)), "30001x1 pixels");
  expect_has(refusal(with_png_size(png, 20'000, 20'000)), "at most 30000 per side and 100000000 in total");
  expect_has(refusal(with_png_size(png, 0, 4)), "cut short or corrupt");
  // A JPEG's size lies in its frame header, FF C0: length, precision, height, width.
  ByteString jpeg = make_jpeg(16, 16, gradient(16, 16, 3));
  std::size_t frame = 0;
  while (jpeg[frame] != std::byte{0xFF} || jpeg[frame + 1] != std::byte{0xC0}) ++frame;
  for (std::size_t i = 5; i < 9; ++i) jpeg[frame + i] = std::byte{0xFF};
  refusal(jpeg);
  jpeg[frame + 5] = jpeg[frame + 7] = std::byte{0x60};
  expect_has(refusal(jpeg), "24831x24831 pixels");
}

TEST(Image, LimitsCanBeLowered) {
  const ByteString png = make_png(20, 10, gradient(20, 10, 3));
  decoded(png, {.side = 20, .pixels = 200});
  expect_has(refusal(png, {.side = 19}), "20x10 pixels");
  expect_has(refusal(png, {.pixels = 199}), "20x10 pixels");
}

TEST(Image, WhatMustBeHeldWholeHasALimit) {
  expect_has(refusal(make_png(20, 10, gradient(20, 10, 3), {.interlaced = true}), {.buffered_bytes = 799}),
             "save it without interlacing");
  decoded(make_png(20, 10, gradient(20, 10, 3)), {.buffered_bytes = 799});
  const auto samples = gradient(640, 640, 3);
  expect_has(refusal(make_jpeg(640, 640, samples, {.progressive = true}), {.buffered_bytes = 1'000'000}),
             "save it as a baseline JPEG");
  decoded(make_jpeg(640, 640, samples), {.buffered_bytes = 1'000'000});
}

TEST(Image, ScansOfAProgressiveJpegHaveALimit) {
  const ByteString jpeg = make_jpeg(32, 32, gradient(32, 32, 3), {.progressive = true});
  decoded(jpeg, {.scans = 10});
  expect_has(refusal(jpeg, {.scans = 5}), "too many scans");
}

TEST(Image, BrokenDiskIsNamedAsSuch) {
  for (const ByteString& bytes :
       {make_png(20, 20, gradient(20, 20, 3)), make_jpeg(64, 64, gradient(64, 64, 3), {.quality = 100})}) {
    for (const std::size_t fails_at : {std::size_t{0}, std::size_t{20}}) {
      MemorySource source(bytes, fails_at);
      Picture picture;
      const std::string error = user_error_of([&] { decode_image(source, "p.png", picture); });
      EXPECT_TRUE(support::mentions(error, {"p.png", "Input/output error"}));
    }
  }
}

TEST(Image, ErrorOfTheReceiverPassesThrough) {
  struct Refusing : RowSink {
    void begin(std::int64_t /*width*/, std::int64_t /*height*/) override {}
    void row(std::span<const std::byte> /*pixels*/) override { throw UserError("no more"); }
  };
  for (const ByteString& bytes : {make_png(4, 4, gradient(4, 4, 3)), make_jpeg(8, 8, gradient(8, 8, 3))}) {
    MemorySource source(bytes);
    Refusing sink;
    EXPECT_EQ(user_error_of([&] { decode_image(source, "p.png", sink); }), "no more");
  }
}

}  // namespace
}  // namespace snug::data
