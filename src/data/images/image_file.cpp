#include "data/images/image_file.h"

#include "base/error.h"
#include "data/file_source.h"
#include "data/images/image.h"
#include "data/images/resize.h"

namespace snug::data {

namespace {

class NoSink : public RowSink {
 public:
  void begin(std::int64_t /*width*/, std::int64_t /*height*/) override {}
  void row(std::span<const std::byte> /*pixels*/) override {}
};

}  // namespace

void decode_image_file(const std::filesystem::path& path) {
  FileSource source(path);
  NoSink sink;
  decode_image(source, path.string(), sink);
}

void read_image_file(const std::filesystem::path& path, std::int64_t side, std::span<std::byte> pixels) {
  FileSource source(path);
  Resizer resizer(side, pixels);
  decode_image(source, path.string(), resizer);
  SNUG_CHECK(resizer.complete(), "{} was decoded only in part", path.string());
}

}  // namespace snug::data
