// Files read at offsets, without mapping them: only the caller's buffer is resident.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

namespace snug::data {

// The system's sentence for errno, for the end of an error message.
std::string system_message(int error);

// An open file descriptor.
class File {
 public:
  File() = default;
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File();
  File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File&& other) noexcept;

  int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

// Opens a regular file for reading; a pipe, a device or a folder is refused without waiting.
File open_regular_file(const std::filesystem::path& path);
// Makes an empty file, or truncates an existing one.
File create_file(const std::filesystem::path& path);
// A file without a name in $TMPDIR (or /tmp): gone when closed, however the process ends.
File open_unnamed_file();

std::int64_t file_size(const File& file, const std::filesystem::path& path);

// Reads until `bytes` is full or the file ends; returns how many. -1 and errno when the system refuses.
std::int64_t read_some_at(const File& file, std::int64_t offset, std::span<std::byte> bytes) noexcept;
// Fills `bytes`; UserError naming `path` when the file has fewer, for example because it was truncated after it was opened.
void read_at(const File& file, const std::filesystem::path& path, std::int64_t offset, std::span<std::byte> bytes);
// Appends all of them; UserError naming `what` when the disk is full.
void write_all(const File& file, const std::string& what, std::span<const std::byte> bytes);
// The same for a file of open_unnamed_file(), whose folder is named, too.
void write_to_unnamed(const File& file, const std::string& what, std::span<const std::byte> bytes);

}  // namespace snug::data
