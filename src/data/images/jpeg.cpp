#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <vector>

// The library's headers use FILE and do not include it.
#include <jerror.h>

#include <jpeglib.h>

#include "base/error.h"
#include "data/file.h"
#include "data/images/image_decoders.h"

namespace snug::data {

namespace {

// Warnings that do not affect the picture; every other one means that the decoder made up pixels.
bool is_harmless(int warning) {
  return warning == JWRN_EXTRANEOUS_DATA || warning == JWRN_ADOBE_XFORM || warning == JWRN_JFIF_MAJOR ||
         warning == JWRN_BOGUS_PROGRESSION;
}

class JpegReader {
 public:
  JpegReader(Prefixed& source, const std::string& name, const ImageLimits& limits)
      : source_(source), name_(name), limits_(limits) {
    cinfo_.client_data = this;
    cinfo_.err = jpeg_std_error(&errors_);
    errors_.error_exit = on_error;
    errors_.emit_message = on_message;
    manager_.init_source = [](j_decompress_ptr) {};
    manager_.fill_input_buffer = on_fill;
    manager_.skip_input_data = on_skip;
    manager_.resync_to_restart = jpeg_resync_to_restart;
    manager_.term_source = [](j_decompress_ptr) {};
    progress_.progress_monitor = on_progress;
  }
  ~JpegReader() { jpeg_destroy_decompress(&cinfo_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  void decode(RowSink& sink) {
    guarded([&] { read_header(); });
    check_image_size(cinfo_.image_width, cinfo_.image_height, name_, limits_);
    check_colors();
    guarded([&] {
      cinfo_.out_color_space = JCS_RGB;
      jpeg_start_decompress(&cinfo_);
    });
    SNUG_CHECK(cinfo_.output_components == 3, "{} components", cinfo_.output_components);
    sink.begin(cinfo_.output_width, cinfo_.output_height);
    std::vector<std::byte> row(std::size_t{3} * cinfo_.output_width);
    while (cinfo_.output_scanline < cinfo_.output_height) {
      auto* bytes = reinterpret_cast<JSAMPLE*>(row.data());
      guarded([&] { jpeg_read_scanlines(&cinfo_, &bytes, 1); });
      sink.row(row);
    }
    guarded([&] { jpeg_finish_decompress(&cinfo_); });
  }

 private:
  // Runs calls of the library; their errors become a UserError. `call` must own nothing: longjmp skips its destructors.
  template <typename Call>
  void guarded(const Call& call) {
    if (setjmp(jump_) != 0) {  // NOLINT: libjpeg's way of reporting errors
      if (source_.error() != 0) throw_user_error("{} cannot be read: {}", name_, system_message(source_.error()));
      if (errors_.msg_code == JERR_NO_BACKING_STORE || errors_.msg_code == JERR_OUT_OF_MEMORY) {
        throw_user_error("{} is a progressive JPEG of {}x{}, too large to be held in memory: save it as a baseline JPEG", name_,
                         cinfo_.image_width, cinfo_.image_height);
      }
      throw_user_error("{} is cut short or corrupt: {}", name_, message_);
    }
    call();
  }

  void read_header() {
    jpeg_create_decompress(&cinfo_);  // clears all but err and client_data
    cinfo_.src = &manager_;
    cinfo_.progress = &progress_;
    cinfo_.mem->max_memory_to_use = static_cast<long>(limits_.buffered_bytes);
    jpeg_read_header(&cinfo_, TRUE);
  }

  void check_colors() const {
    switch (cinfo_.jpeg_color_space) {
      case JCS_GRAYSCALE:
      case JCS_RGB:
      case JCS_YCbCr:
        return;
      case JCS_CMYK:
      case JCS_YCCK:
        throw_user_error("{} is a JPEG in CMYK, whose colors depend on the printer: convert it to RGB", name_);
      default:
        throw_user_error("{} is a JPEG with {} color components: convert it to RGB or gray", name_, cinfo_.num_components);
    }
  }

  static JpegReader& of(void* cinfo) { return *static_cast<JpegReader*>(static_cast<j_common_ptr>(cinfo)->client_data); }

  [[noreturn]] void fail(const char* message) {
    std::strncpy(message_, message, sizeof message_ - 1);
    std::longjmp(jump_, 1);  // NOLINT: no C++ object lies between here and guarded()
  }

  [[noreturn]] static void on_error(j_common_ptr cinfo) {
    char message[JMSG_LENGTH_MAX];
    cinfo->err->format_message(cinfo, message);
    of(cinfo).fail(message);
  }

  static void on_message(j_common_ptr cinfo, int level) {
    if (level < 0 && !is_harmless(cinfo->err->msg_code)) on_error(cinfo);
  }

  static boolean on_fill(j_decompress_ptr cinfo) {
    JpegReader& self = of(cinfo);
    const std::size_t count = self.source_.read(std::as_writable_bytes(std::span(self.buffer_)));
    if (count == 0) self.fail("it ends too early");
    self.manager_.next_input_byte = self.buffer_.data();
    self.manager_.bytes_in_buffer = count;
    return TRUE;
  }

  static void on_skip(j_decompress_ptr cinfo, long count) {
    JpegReader& self = of(cinfo);
    for (; count > static_cast<long>(self.manager_.bytes_in_buffer); on_fill(cinfo)) {
      count -= static_cast<long>(self.manager_.bytes_in_buffer);
    }
    if (count <= 0) return;
    self.manager_.next_input_byte += count;
    self.manager_.bytes_in_buffer -= static_cast<std::size_t>(count);
  }

  // A few bytes can require one more pass over the whole picture.
  static void on_progress(j_common_ptr cinfo) {
    JpegReader& self = of(cinfo);
    if (self.cinfo_.input_scan_number > self.limits_.scans) self.fail("it has too many scans");
  }

  Prefixed& source_;
  const std::string& name_;
  const ImageLimits& limits_;
  jpeg_decompress_struct cinfo_{};
  jpeg_error_mgr errors_{};
  jpeg_source_mgr manager_{};
  jpeg_progress_mgr progress_{};
  std::array<JOCTET, 4096> buffer_{};
  std::jmp_buf jump_{};
  char message_[JMSG_LENGTH_MAX] = {};
};

}  // namespace

void decode_jpeg(Prefixed& source, const std::string& name, RowSink& sink, const ImageLimits& limits) {
  JpegReader(source, name, limits).decode(sink);
}

}  // namespace snug::data
