#include "io/file_io.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "base/error.h"

namespace snug::io {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kTemporary = ".tmp-";

// "a/b" of "a/b/c", "." of "c".
fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

std::string reason(int error) { return std::strerror(error); }  // NOLINT(concurrency-mt-unsafe): glibc's is safe

[[noreturn]] void throw_write_error(const fs::path& path, int error) {
  if (error == ENOSPC || error == EDQUOT) {
    throw DiskFull(fmt::format("the disk of folder '{}' is full, so '{}' was not written; free some space there",
                               folder_of(path).string(), path.filename().string()));
  }
  if (error == EFBIG) {
    throw DiskFull(fmt::format("folder '{}' is full: '{}' would grow past the file size allowed there; raise the limit",
                               folder_of(path).string(), path.filename().string()));
  }
  std::error_code unknown;
  if (error == ENOENT && !fs::exists(folder_of(path), unknown)) {
    throw_user_error("'{}' cannot be written: there is no folder '{}'; make it first", path.string(), folder_of(path).string());
  }
  throw_user_error("'{}' cannot be written: {}", path.string(), reason(error));
}

FileHandle open_file(const fs::path& path, int flags, mode_t mode = 0) {
  int descriptor = -1;
  do {
    descriptor = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (descriptor < 0 && errno == EINTR);
  return FileHandle(descriptor);
}

// All of the bytes; the error number, or 0.
int write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return 0;
}

int sync(int descriptor) {
  while (::fsync(descriptor) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

}  // namespace

FileHandle& FileHandle::operator=(FileHandle&& other) noexcept {
  if (this != &other) {
    reset();
    descriptor_ = std::exchange(other.descriptor_, -1);
  }
  return *this;
}

void FileHandle::reset() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

InputFile::InputFile(fs::path path) : path_(std::move(path)) {
  file_ = open_file(path_, O_RDONLY | O_NONBLOCK);  // without waiting for the other end of a pipe
  if (!file_.open()) throw_user_error("'{}' cannot be read: {}", path_.string(), reason(errno));
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) throw_user_error("'{}' cannot be read: {}", path_.string(), reason(errno));
  if (!S_ISREG(status.st_mode)) throw_user_error("'{}' is not a file", path_.string());
  size_ = static_cast<std::uint64_t>(status.st_size);
}

void InputFile::read_at(std::uint64_t offset, std::span<std::byte> target) const {
  while (!target.empty()) {
    const ssize_t got = ::pread(file_.get(), target.data(), target.size(), static_cast<off_t>(offset));
    if (got < 0) {
      if (errno == EINTR) continue;
      throw_user_error("'{}' cannot be read: {}", path_.string(), reason(errno));
    }
    if (got == 0) throw_user_error("'{}' ends at byte {}, before what it promises", path_.string(), offset);
    target = target.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
}

AtomicFile::AtomicFile(const fs::path& path) : destination_(find_destination(path)) {
  const fs::path& target = destination_.path;
  if (destination_.kind == Destination::Kind::descriptor) {
    file_ = FileHandle(::fcntl(destination_.descriptor, F_DUPFD_CLOEXEC, 0));
    if (!file_.open()) throw_write_error(target, errno);
    return;
  }
  if (destination_.kind == Destination::Kind::stream) {
    file_ = open_file(target, O_WRONLY | O_NOCTTY);  // waits for the reader of a pipe, as a shell does
    if (!file_.open()) throw_write_error(target, errno);
    return;
  }
  // One process may write two files of the same name at once; a number distinguishes them.
  static std::atomic<unsigned> count{0};
  temporary_ = folder_of(target) / fmt::format("{}{}{}-{}", target.filename().string(), kTemporary, ::getpid(), count++);
  ::unlink(temporary_.c_str());  // left by an earlier process with the same id
  file_ = open_file(temporary_, O_WRONLY | O_CREAT | O_EXCL, 0666);
  if (!file_.open()) throw_write_error(target, errno);
  if (const auto& old = destination_.replaced) {
    // The owner only where permitted (root); failing to keep it must not prevent the write.
    if (::fchown(file_.get(), old->user, old->group) != 0) errno = 0;
    if (::fchmod(file_.get(), old->mode & 0777U) != 0) errno = 0;
  }
}

AtomicFile::~AtomicFile() {
  if (replaces() && !committed_) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (const int error = write_all(file_.get(), bytes); error != 0) throw_write_error(destination_.path, error);
}

void AtomicFile::commit() {
  const fs::path& target = destination_.path;
  SNUG_CHECK(!committed_, "'{}' is written already", target.string());
  if (!replaces()) {
    file_.reset();
    committed_ = true;
    return;
  }
  if (const int error = sync(file_.get()); error != 0) throw_write_error(target, error);
  file_.reset();
  if (::rename(temporary_.c_str(), target.c_str()) != 0) throw_write_error(target, errno);
  committed_ = true;
  // The new name too must survive a loss of power. Some file systems cannot sync a folder and return EINVAL.
  const FileHandle folder = open_file(folder_of(target), O_RDONLY | O_DIRECTORY);
  if (!folder.open()) throw_write_error(target, errno);
  if (const int error = sync(folder.get()); error != 0 && error != EINVAL) throw_write_error(target, error);
}

bool is_temporary_name(std::string_view name) { return name.find(kTemporary) != std::string_view::npos; }

AppendFile::AppendFile(fs::path path) : path_(std::move(path)) {
  file_ = open_file(path_, O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (!file_.open()) throw_write_error(path_, errno);
}

void AppendFile::append_line(std::string_view line) {
  std::string text(line);
  text += '\n';
  const off_t before = ::lseek(file_.get(), 0, SEEK_END);
  if (const int error = write_all(file_.get(), std::as_bytes(std::span(text))); error != 0) {
    // Half a line would corrupt the file for its readers. When even this fails, they have to skip it.
    if (before >= 0 && ::ftruncate(file_.get(), before) != 0) throw_write_error(path_, error);
    throw_write_error(path_, error);
  }
}

std::string read_text_file(const fs::path& path, std::uint64_t most) {
  const InputFile file(path);
  if (file.size() > most) throw_user_error("'{}' has {} bytes; at most {} are possible", path.string(), file.size(), most);
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

void require_writable(const fs::path& path) {
  const Destination destination = find_destination(path);
  if (destination.kind == Destination::Kind::file) AtomicFile{destination.path};  // and removed again
}

void write_text_file(const fs::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace snug::io
