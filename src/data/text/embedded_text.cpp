#include "data/text/embedded_text.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/error.h"

namespace snug::data {

namespace {

// In pieces, because compilers need not take longer strings; each ends with a NUL that is not the text's.
constexpr std::size_t kPieceBytes = 32'768;
constexpr char kPieces[][kPieceBytes + 1] = {
#include "data/embedded/moby_dick.inc"
};
constexpr std::size_t kLastBytes = std::char_traits<char>::length(kPieces[std::size(kPieces) - 1]);
constexpr std::size_t kBytes = (std::size(kPieces) - 1) * kPieceBytes + kLastBytes;

class EmbeddedText : public TextSource {
 public:
  std::int64_t bytes() const override { return kBytes; }
  std::int64_t end_of_text(std::int64_t /*offset*/) const override { return kBytes; }
  void read(std::int64_t offset, std::span<std::byte> target) const override {
    SNUG_CHECK(offset >= 0 && offset + static_cast<std::int64_t>(target.size()) <= bytes(), "bytes {} to {} of {}", offset,
               target.size(), bytes());
    for (auto at = static_cast<std::size_t>(offset); !target.empty();) {
      const std::size_t within = at % kPieceBytes;
      const std::size_t count = std::min(target.size(), kPieceBytes - within);
      std::memcpy(target.data(), kPieces[at / kPieceBytes] + within, count);
      at += count;
      target = target.subspan(count);
    }
  }
};

}  // namespace

std::shared_ptr<const TextSource> embedded_text() { return std::make_shared<EmbeddedText>(); }

}  // namespace snug::data
