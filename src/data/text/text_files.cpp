#include <algorithm>
#include <functional>

#include "base/error.h"
#include "base/pieces.h"
#include "data/external_sort.h"
#include "data/folder.h"
#include "data/text/text_source.h"

namespace snug::data {

namespace {

const char* const kWhat = "the temporary list of text files";
constexpr std::size_t kBuffered = 1024;
// A folder that is linked into itself has no bottom.
constexpr int kMostNested = 32;

// Adds the names of .txt files, relative to the topmost folder, to `names`; returns how many other files there are.
std::int64_t list_texts(const std::filesystem::path& folder, const std::string& prefix, int depth, ExternalSort& names) {
  if (depth > kMostNested) {
    throw_user_error("{} lies more than {} folders deep; remove it, or the link that leads back to a folder above it",
                     folder.string(), kMostNested);
  }
  std::int64_t others = 0;
  for_each_entry(folder, [&](std::string_view name, EntryKind kind) {
    const std::string path = prefix + std::string(name);
    if (kind == EntryKind::folder) {
      others += list_texts(folder / name, path + '/', depth + 1, names);
    } else if (kind == EntryKind::file && has_ending(name, {"txt"})) {
      names.add(path);
    } else {
      ++others;
    }
  });
  return others;
}

}  // namespace

std::int64_t for_each_text(const std::filesystem::path& folder,
                           const std::function<void(const std::filesystem::path& path, std::string_view name)>& take) {
  ExternalSort names;
  const std::int64_t others = list_texts(folder, "", 0, names);
  names.drain([&](std::string_view name) { take(folder / name, name); });
  return others;
}

void read_texts(const TextPart& part, const std::function<void(std::string_view piece)>& take,
                const std::function<void(bool is_whole)>& end_text) {
  std::vector<std::byte> buffer(std::min(kPieceBytes, static_cast<std::size_t>(part.bytes())));
  for (std::int64_t at = part.begin; at < part.end;) {
    const std::int64_t end_of_text = part.source->end_of_text(at);
    const std::int64_t end = std::min(end_of_text, part.end);
    while (at < end) {
      const auto size = std::min(buffer.size(), static_cast<std::size_t>(end - at));
      const std::span<std::byte> piece = std::span(buffer).first(size);
      part.source->read(at, piece);
      take({reinterpret_cast<const char*>(piece.data()), size});
      at += static_cast<std::int64_t>(size);
    }
    end_text(end == end_of_text);
  }
}

void TextFiles::add(const std::string& name, std::int64_t bytes) {
  if (bytes == 0) return;
  names_.append(name, 0);
  buffer_.push_back(bytes_);
  bytes_ += bytes;
  if (buffer_.size() < kBuffered) return;
  write_to_unnamed(begins_, kWhat, std::as_bytes(std::span(buffer_)));
  buffer_.clear();
}

void TextFiles::finish() {
  write_to_unnamed(begins_, kWhat, std::as_bytes(std::span(buffer_)));
  buffer_ = {};
  names_.finish();
  if (names_.size() != 1) return;
  only_path_ = folder_ / names_.read(0).name;
  only_file_ = open_regular_file(only_path_);
}

std::int64_t TextFiles::begin_of(std::int64_t number) const {
  if (number == names_.size()) return bytes_;
  std::int64_t begin = 0;
  read_at(begins_, kWhat, number * static_cast<std::int64_t>(sizeof begin), std::as_writable_bytes(std::span(&begin, 1)));
  return begin;
}

std::int64_t TextFiles::file_of(std::int64_t offset) const {
  std::int64_t low = 0;
  std::int64_t high = names_.size();
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (begin_of(middle) <= offset ? low : high) = middle;
  }
  return low;
}

std::int64_t TextFiles::end_of_text(std::int64_t offset) const { return begin_of(file_of(offset) + 1); }

void TextFiles::read(std::int64_t offset, std::span<std::byte> target) const {
  SNUG_CHECK(offset >= 0 && offset + static_cast<std::int64_t>(target.size()) <= bytes_, "bytes {} to {} of {}", offset,
             target.size(), bytes_);
  if (!only_path_.empty()) return read_at(only_file_, only_path_, offset, target);
  for (std::int64_t number = file_of(offset); !target.empty(); ++number) {
    const std::int64_t begin = begin_of(number);
    const auto left = static_cast<std::size_t>(begin_of(number + 1) - offset);
    const std::span<std::byte> piece = target.first(std::min(left, target.size()));
    const std::filesystem::path path = folder_ / names_.read(number).name;
    read_at(open_regular_file(path), path, offset - begin, piece);
    offset += static_cast<std::int64_t>(piece.size());
    target = target.subspan(piece.size());
  }
}

}  // namespace snug::data
