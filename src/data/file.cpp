#include "data/file.h"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "base/error.h"

namespace snug::data {

namespace {

std::string temporary_folder() {
  const char* asked = std::getenv("TMPDIR");
  return asked != nullptr && *asked != '\0' ? asked : "/tmp";
}

// The error number, or 0.
int append(const File& file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file.descriptor(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return 0;
}

}  // namespace

std::string system_message(int error) { return std::generic_category().message(error); }

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

File& File::operator=(File&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

File open_regular_file(const std::filesystem::path& path) {
  // Without O_NONBLOCK, opening a pipe would wait for its writer; a regular file ignores it.
  File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.descriptor() < 0) throw_user_error("{} cannot be read: {}", path.string(), system_message(errno));
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) throw_user_error("{} cannot be read: {}", path.string(), system_message(errno));
  if (!S_ISREG(status.st_mode)) throw_user_error("{} is not a regular file", path.string());
  return file;
}

File create_file(const std::filesystem::path& path) {
  File file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.descriptor() < 0) throw_user_error("{} cannot be written: {}", path.string(), system_message(errno));
  return file;
}

File open_unnamed_file() {
  const std::string folder = temporary_folder();
  std::string name = folder + "/snug-XXXXXX";
  File file(::mkostemp(name.data(), O_CLOEXEC));
  if (file.descriptor() < 0) {
    throw_user_error("no temporary file can be made in {}: {}; set TMPDIR to a folder that can be written", folder,
                     system_message(errno));
  }
  ::unlink(name.c_str());
  return file;
}

std::int64_t file_size(const File& file, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) throw_user_error("{} cannot be read: {}", path.string(), system_message(errno));
  return status.st_size;
}

std::int64_t read_some_at(const File& file, std::int64_t offset, std::span<std::byte> bytes) noexcept {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count =
        ::pread(file.descriptor(), bytes.data() + done, bytes.size() - done, offset + static_cast<std::int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return static_cast<std::int64_t>(done);
}

void read_at(const File& file, const std::filesystem::path& path, std::int64_t offset, std::span<std::byte> bytes) {
  const std::int64_t count = read_some_at(file, offset, bytes);
  if (count < 0) throw_user_error("{} cannot be read: {}", path.string(), system_message(errno));
  if (count < static_cast<std::int64_t>(bytes.size())) {
    throw_user_error("{} has become shorter since it was opened: it ends at byte {}", path.string(), offset + count);
  }
}

void write_all(const File& file, const std::string& what, std::span<const std::byte> bytes) {
  if (const int error = append(file, bytes); error != 0)
    throw_user_error("{} cannot be written: {}", what, system_message(error));
}

void write_to_unnamed(const File& file, const std::string& what, std::span<const std::byte> bytes) {
  const int error = append(file, bytes);
  if (error == 0) return;
  throw_user_error("{} cannot be written in {}: {}; free some space there, or set TMPDIR to a folder that has more", what,
                   temporary_folder(), system_message(error));
}

}  // namespace snug::data
