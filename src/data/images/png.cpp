#include <csetjmp>
#include <cstring>
#include <vector>

#include <png.h>

#include "base/error.h"
#include "data/file.h"
#include "data/images/image_decoders.h"

namespace snug::data {

namespace {

class PngReader {
 public:
  PngReader(Prefixed& source, const std::string& name) : source_(source), name_(name) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw std::bad_alloc();
    }
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  void decode(RowSink& sink, const ImageLimits& limits) {
    guarded([&] { read_header(limits); });
    const std::int64_t width = png_get_image_width(png_, info_);
    const std::int64_t height = png_get_image_height(png_, info_);
    check_image_size(width, height, name_, limits);
    int passes = 1;
    guarded([&] { passes = ask_for_rgba(); });
    SNUG_CHECK(png_get_rowbytes(png_, info_) == static_cast<std::size_t>(width) * 4, "rows of {} bytes for a width of {}",
               png_get_rowbytes(png_, info_), width);
    if (passes > 1 && width * height * 4 > limits.buffered_bytes) {
      throw_user_error("{} is an interlaced PNG of {}x{}, too large to be held in memory: save it without interlacing", name_,
                       width, height);
    }
    // If interlaced, every pass adds pixels to the rows of the whole image; otherwise each row is read into the same buffer.
    const std::size_t row_bytes = static_cast<std::size_t>(width) * 4;
    std::vector<png_byte> rows(row_bytes * static_cast<std::size_t>(passes > 1 ? height : 1));
    for (int pass = 0; pass + 1 < passes; ++pass) {
      for (std::int64_t y = 0; y < height; ++y) read_row(rows.data() + static_cast<std::size_t>(y) * row_bytes);
    }
    sink.begin(width, height);
    std::vector<std::byte> rgb(static_cast<std::size_t>(width) * 3);
    for (std::int64_t y = 0; y < height; ++y) {
      png_byte* row = rows.data() + (passes > 1 ? static_cast<std::size_t>(y) * row_bytes : 0);
      read_row(row);
      lay_on_white(row, rgb);
      sink.row(rgb);
    }
    // The end carries the checksum of what was read.
    guarded([&] { png_read_end(png_, nullptr); });
  }

 private:
  // Runs calls of the library; their errors become a UserError. `call` must own nothing: longjmp skips its destructors.
  template <typename Call>
  void guarded(const Call& call) {
    if (setjmp(jump_) != 0) {  // NOLINT: libpng's way of reporting errors
      if (source_.error() != 0) throw_user_error("{} cannot be read: {}", name_, system_message(source_.error()));
      throw_user_error("{} is cut short or corrupt: {}", name_, message_);
    }
    call();
  }

  void read_header(const ImageLimits& limits) {
    png_set_read_fn(png_, this, on_read);
    png_set_user_limits(png_, 0x7FFFFFFF, 0x7FFFFFFF);  // check_image_size() gives a better message
    // Reads only the picture: no text, no color profile, nor the memory that they may need.
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_set_chunk_malloc_max(png_, static_cast<png_alloc_size_t>(limits.buffered_bytes));
    png_read_info(png_, info_);
  }

  // For any format of the file, rows are R,G,B,A of 8 bits. Returns the number of passes.
  int ask_for_rgba() {
    png_set_expand(png_);
    png_set_scale_16(png_);
    png_set_gray_to_rgb(png_);
    png_set_add_alpha(png_, 0xFF, PNG_FILLER_AFTER);
    const int passes = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return passes;
  }

  void read_row(png_byte* row) {
    guarded([&] { png_read_row(png_, row, nullptr); });
  }

  static void lay_on_white(const png_byte* rgba, std::vector<std::byte>& rgb) {
    for (std::size_t at = 0; at < rgb.size(); at += 3, rgba += 4) {
      const unsigned alpha = rgba[3];
      for (std::size_t c = 0; c < 3; ++c) {
        rgb[at + c] = static_cast<std::byte>((rgba[c] * alpha + 255U * (255U - alpha) + 127U) / 255U);
      }
    }
  }

  static void on_read(png_structp png, png_bytep bytes, std::size_t count) {
    auto& self = *static_cast<PngReader*>(png_get_io_ptr(png));
    if (self.source_.read(std::as_writable_bytes(std::span(bytes, count))) < count) png_error(png, "it ends too early");
  }

  [[noreturn]] static void on_error(png_structp png, png_const_charp message) {
    auto& self = *static_cast<PngReader*>(png_get_error_ptr(png));
    std::strncpy(self.message_, message, sizeof self.message_ - 1);
    std::longjmp(self.jump_, 1);  // NOLINT: no C++ object lies between here and guarded()
  }

  static void on_warning(png_structp /*png*/, png_const_charp /*message*/) {}

  Prefixed& source_;
  const std::string& name_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::jmp_buf jump_{};
  char message_[200] = {};
};

}  // namespace

void decode_png(Prefixed& source, const std::string& name, RowSink& sink, const ImageLimits& limits) {
  PngReader(source, name).decode(sink, limits);
}

}  // namespace snug::data
