#include "data/file_index.h"

#include <span>

#include "base/error.h"

namespace snug::data {

namespace {

const char* const kWhat = "the temporary list of image files";
constexpr std::size_t kBufferBytes = 16'384;

void flush(const File& file, std::string& buffer) {
  write_to_unnamed(file, kWhat, std::as_bytes(std::span(buffer)));
  buffer.clear();
}

}  // namespace

FileIndex::FileIndex() : names_(open_unnamed_file()), records_(open_unnamed_file()) {}

void FileIndex::append(std::string_view name, std::int32_t label) {
  const Record record{.name_offset = names_bytes_, .name_bytes = static_cast<std::uint32_t>(name.size()), .label = label};
  names_buffer_.append(name);
  records_buffer_.append(reinterpret_cast<const char*>(&record), sizeof record);
  names_bytes_ += name.size();
  ++size_;
  if (names_buffer_.size() >= kBufferBytes) flush(names_, names_buffer_);
  if (records_buffer_.size() >= kBufferBytes) flush(records_, records_buffer_);
}

void FileIndex::finish() {
  flush(names_, names_buffer_);
  flush(records_, records_buffer_);
  names_buffer_.shrink_to_fit();
  records_buffer_.shrink_to_fit();
}

FileIndex::Entry FileIndex::read(std::int64_t index) const {
  SNUG_CHECK(index >= 0 && index < size_ && records_buffer_.empty(), "entry {} of {}", index, size_);
  Record record;
  read_at(records_, kWhat, index * static_cast<std::int64_t>(sizeof record), std::as_writable_bytes(std::span(&record, 1)));
  Entry entry{.name = std::string(record.name_bytes, '\0'), .label = record.label};
  read_at(names_, kWhat, static_cast<std::int64_t>(record.name_offset), std::as_writable_bytes(std::span(entry.name)));
  return entry;
}

}  // namespace snug::data
