#include "pictures.h"

#include <cstdio>

#include <jpeglib.h>
#include <png.h>

namespace snug::data {

namespace {

// The palette of PngKind::palette: index i is (i, 2i, 255 - i); transparent is index 0, half so index 1.
void set_palette(png_structp png, png_infop info, bool transparent) {
  png_color colors[64];
  for (int i = 0; i < 64; ++i) {
    colors[i] = {static_cast<png_byte>(i), static_cast<png_byte>(2 * i), static_cast<png_byte>(255 - i)};
  }
  png_set_PLTE(png, info, colors, 64);
  png_byte alpha[2] = {0, 128};
  if (transparent) png_set_tRNS(png, info, alpha, 2, nullptr);
}

}  // namespace

ByteString make_png(std::uint32_t width, std::uint32_t height, const std::vector<std::uint8_t>& samples, PngOptions options) {
  ByteString result;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &result,
      [](png_structp p, png_bytep bytes, std::size_t count) {
        const auto* begin = reinterpret_cast<const std::byte*>(bytes);
        auto& to = *static_cast<ByteString*>(png_get_io_ptr(p));
        to.insert(to.end(), begin, begin + count);
      },
      nullptr);
  int colors = PNG_COLOR_TYPE_RGB;
  int channels = 3;
  int depth = 8;
  switch (options.kind) {
    case PngKind::gray:
      colors = PNG_COLOR_TYPE_GRAY, channels = 1;
      break;
    case PngKind::gray_1_bit:
      colors = PNG_COLOR_TYPE_GRAY, channels = 1, depth = 1;
      break;
    case PngKind::gray_alpha:
      colors = PNG_COLOR_TYPE_GRAY_ALPHA, channels = 2;
      break;
    case PngKind::rgb:
      break;
    case PngKind::rgb_16_bit:
      depth = 16;
      break;
    case PngKind::rgba:
      colors = PNG_COLOR_TYPE_RGBA, channels = 4;
      break;
    case PngKind::palette:
    case PngKind::palette_transparent:
      colors = PNG_COLOR_TYPE_PALETTE, channels = 1;
      break;
  }
  png_set_IHDR(png, info, width, height, depth, colors, options.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (colors == PNG_COLOR_TYPE_PALETTE) set_palette(png, info, options.kind == PngKind::palette_transparent);
  png_write_info(png, info);
  if (depth == 1) png_set_packing(png);
  // 16 bits: v becomes v * 257, so that scaling back gives v.
  std::vector<png_byte> bytes;
  for (const std::uint8_t sample : samples) {
    bytes.push_back(sample);
    if (depth == 16) bytes.push_back(sample);
  }
  const std::size_t row_bytes = std::size_t{width} * static_cast<std::size_t>(channels) * (depth == 16 ? 2 : 1);
  if (bytes.size() != row_bytes * height) throw std::runtime_error("wrong number of samples");
  std::vector<png_bytep> rows;
  for (std::uint32_t y = 0; y < height; ++y) rows.push_back(bytes.data() + y * row_bytes);
  png_write_image(png, rows.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return result;
}

ByteString make_jpeg(std::uint32_t width, std::uint32_t height, const std::vector<std::uint8_t>& samples, JpegOptions options) {
  jpeg_compress_struct cinfo{};
  jpeg_error_mgr errors{};
  cinfo.err = jpeg_std_error(&errors);
  jpeg_create_compress(&cinfo);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&cinfo, &memory, &size);
  cinfo.image_width = width;
  cinfo.image_height = height;
  cinfo.input_components = options.kind == JpegKind::gray ? 1 : options.kind == JpegKind::rgb ? 3 : 4;
  cinfo.in_color_space = options.kind == JpegKind::gray ? JCS_GRAYSCALE : options.kind == JpegKind::rgb ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&cinfo);
  jpeg_set_quality(&cinfo, options.quality, TRUE);
  if (options.progressive) jpeg_simple_progression(&cinfo);
  jpeg_start_compress(&cinfo, TRUE);
  const std::size_t row_bytes = std::size_t{width} * static_cast<std::size_t>(cinfo.input_components);
  while (cinfo.next_scanline < cinfo.image_height) {
    auto* row = const_cast<JSAMPLE*>(samples.data() + cinfo.next_scanline * row_bytes);
    jpeg_write_scanlines(&cinfo, &row, 1);
  }
  jpeg_finish_compress(&cinfo);
  const auto* begin = reinterpret_cast<const std::byte*>(memory);
  ByteString result(begin, begin + size);
  jpeg_destroy_compress(&cinfo);
  std::free(memory);
  return result;
}

ByteString plain_png(std::uint32_t width, std::uint32_t height, std::uint8_t red, std::uint8_t green, std::uint8_t blue) {
  std::vector<std::uint8_t> samples;
  for (std::uint32_t i = 0; i < width * height; ++i) samples.insert(samples.end(), {red, green, blue});
  return make_png(width, height, samples);
}

}  // namespace snug::data
