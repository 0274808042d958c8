#include "data/text/text_lines.h"

#include <cerrno>
#include <span>

#include "base/error.h"
#include "base/pieces.h"
#include "base/printable.h"

namespace snug::data {

TextLines::TextLines(const std::filesystem::path& path) : path_(path), file_(open_regular_file(path)) {}

std::string TextLines::source() const { return in_quotes(path_.string(), 200); }

bool TextLines::fill() {
  read_.erase(0, begin_);
  begin_ = 0;
  const std::size_t before = read_.size();
  read_.resize(before + kPieceBytes);
  const std::int64_t count = read_some_at(file_, offset_, std::as_writable_bytes(std::span(read_).subspan(before)));
  if (count < 0) throw_user_error("{} cannot be read: {}", path_.string(), system_message(errno));
  read_.resize(before + static_cast<std::size_t>(count));
  offset_ += count;
  return count > 0;
}

std::optional<std::string_view> TextLines::next() {
  std::size_t searched = 0;
  for (;;) {
    const std::string_view rest = std::string_view(read_).substr(begin_);
    std::size_t end = rest.find('\n', searched);
    searched = rest.size();
    const bool is_whole = end != std::string_view::npos;
    if (!is_whole && rest.size() <= kLongestLine && fill()) continue;
    if (!is_whole) end = searched;
    if (end > kLongestLine)
      throw_user_error("line {} of {} has more than {} bytes; a line is one sentence", lines_ + 1, source(), kLongestLine);
    if (!is_whole && end == 0) return std::nullopt;
    const std::string_view line = std::string_view(read_).substr(begin_, end);
    begin_ += end + (is_whole ? 1 : 0);
    ++lines_;
    return line;
  }
}

}  // namespace snug::data
