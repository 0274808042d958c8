#include "data/images/cifar_mirror.h"

#include <array>

#include "base/error.h"
#include "data/file.h"
#include "data/file_source.h"
#include "data/images/cifar.h"
#include "data/images/image.h"

namespace snug::data {

namespace {

constexpr std::int64_t kLabelsLimit = 1 << 20;  // bytes of a file of labels; 50,000 labels take 100,001

// Converts rows to records as they arrive.
class RecordWriter : public RowSink {
 public:
  RecordWriter(const std::filesystem::path& picture, std::span<const std::uint8_t> labels, const std::filesystem::path& batch)
      : picture_(picture), labels_(labels), path_(batch), file_(create_file(batch)) {}

  void begin(std::int64_t width, std::int64_t height) override {
    if (width != kCifarPlane || height != static_cast<std::int64_t>(labels_.size())) {
      throw_user_error("{} is {}x{} pixels instead of {}x{}", picture_.string(), width, height, kCifarPlane, labels_.size());
    }
  }

  void row(std::span<const std::byte> pixels) override {
    std::array<std::byte, kCifarRecordBytes> record;
    record[0] = std::byte{labels_[next_++]};
    for (std::size_t i = 0; i < kCifarPlane; ++i) {
      for (std::size_t c = 0; c < 3; ++c) record[1 + c * kCifarPlane + i] = pixels[3 * i + c];
    }
    write_all(file_, path_.string(), record);
  }

 private:
  const std::filesystem::path& picture_;
  std::span<const std::uint8_t> labels_;
  const std::filesystem::path& path_;
  File file_;
  std::size_t next_ = 0;
};

}  // namespace

std::vector<std::uint8_t> parse_labels(std::string_view text, const std::string& name) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  std::vector<std::uint8_t> labels;
  for (std::size_t i = 0; i < text.size(); ++i) {
    // [d,d,...,d]: brackets and commas at even places, digits at odd ones.
    const char c = text[i];
    const bool good = i == 0 ? c == '[' : i % 2 == 1 ? c >= '0' && c <= '9' : c == (i + 1 == text.size() ? ']' : ',');
    if (!good) throw_user_error("{} is not a list of labels 0 to 9: byte {} is wrong", name, i);
    if (i % 2 == 1) labels.push_back(static_cast<std::uint8_t>(c - '0'));
  }
  if (labels.empty() || text.size() % 2 == 0) throw_user_error("{} is not a list of labels 0 to 9: it ends too early", name);
  return labels;
}

std::vector<std::uint8_t> read_labels(const std::filesystem::path& path) {
  const File file = open_regular_file(path);
  const std::int64_t size = file_size(file, path);
  if (size > kLabelsLimit) throw_user_error("{} has {} bytes: too many for a list of labels", path.string(), size);
  std::string text(static_cast<std::size_t>(size), '\0');
  read_at(file, path, 0, std::as_writable_bytes(std::span(text)));
  return parse_labels(text, path.string());
}

void convert_batch(const std::filesystem::path& picture, std::span<const std::uint8_t> labels,
                   const std::filesystem::path& batch) {
  FileSource source(picture);
  RecordWriter writer(picture, labels, batch);
  decode_image(source, picture.string(), writer);
}

}  // namespace snug::data
