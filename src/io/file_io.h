// Files that must not be lost: read in pieces, written so that a reader finds the old file or the complete new one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "io/destination.h"
#include <snug/error.h>

namespace snug::io {

// A file could not be written because the disk is full. What to do after freeing space depends on what was being written: a
// caller that knows better than "try again" catches it and appends its advice to `fact`.
class DiskFull : public UserError {
 public:
  explicit DiskFull(const std::string& fact) : UserError(fact + " and try again"), fact_(fact) {}
  // What happened and that space must be freed; the sentence is unfinished.
  const std::string& fact() const { return fact_; }

 private:
  std::string fact_;
};

// A file descriptor that closes itself.
class FileHandle {
 public:
  FileHandle() = default;
  explicit FileHandle(int descriptor) : descriptor_(descriptor) {}
  ~FileHandle() { reset(); }
  FileHandle(FileHandle&& other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
  FileHandle& operator=(FileHandle&& other) noexcept;
  FileHandle(const FileHandle&) = delete;
  FileHandle& operator=(const FileHandle&) = delete;

  int get() const { return descriptor_; }
  bool open() const { return descriptor_ >= 0; }
  void reset();

 private:
  int descriptor_ = -1;
};

// A regular file opened for reading at any position.
class InputFile {
 public:
  // UserError when it does not exist, is not readable or not a regular file.
  explicit InputFile(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  // Fills `target` from `offset`; UserError when the file ends before that.
  void read_at(std::uint64_t offset, std::span<std::byte> target) const;

 private:
  std::filesystem::path path_;
  FileHandle file_;
  std::uint64_t size_ = 0;
};

// A file under a temporary name beside the one that `path` names, symbolic links followed. `commit` makes it durable and gives it
// its name, with the permissions of the file that it replaces; without that it is removed. The old file stays intact until then.
// A device, a pipe or an open descriptor (/dev/stdout) is not replaced but written into directly.
class AtomicFile {
 public:
  // UserError when the folder does not exist or is not writable, or `path` is something that cannot be written into.
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // DiskFull naming the folder when the disk is full.
  void write(std::span<const std::byte> bytes);
  void commit();

 private:
  bool replaces() const { return destination_.kind == Destination::Kind::file; }

  Destination destination_;
  std::filesystem::path temporary_;
  FileHandle file_;
  bool committed_ = false;
};

// Whether a name in a folder is an AtomicFile's temporary one: a killed process may leave one behind.
bool is_temporary_name(std::string_view name);

// A file that lines are added to.
class AppendFile {
 public:
  explicit AppendFile(std::filesystem::path path);
  // The line and its end in one write. DiskFull naming the folder when the disk is full.
  void append_line(std::string_view line);

 private:
  std::filesystem::path path_;
  FileHandle file_;
};

// The whole file; UserError when it is longer than `most` bytes.
std::string read_text_file(const std::filesystem::path& path, std::uint64_t most);
// UserError when an AtomicFile of this path could not be made: to be checked before long work.
void require_writable(const std::filesystem::path& path);
// Through an AtomicFile.
void write_text_file(const std::filesystem::path& path, std::string_view text);

}  // namespace snug::io
