#include "io/destination.h"

#include <cerrno>
#include <charconv>
#include <string>
#include <sys/stat.h>
#include <system_error>

#include "base/error.h"

namespace snug::io {

namespace fs = std::filesystem;

namespace {

// As many as Linux follows.
constexpr int kMostLinks = 40;

// The N of /proc/self/fd/N. The target of such a link is only informative: it may be a pipe, or a file that a shell has opened
// for us and that must not be replaced.
std::optional<int> own_descriptor(const fs::path& path) {
  std::error_code error;
  const fs::path own = fs::canonical("/proc/self/fd", error);
  if (error || fs::canonical(path.has_parent_path() ? path.parent_path() : ".", error) != own || error) return std::nullopt;
  const std::string name = path.filename().string();
  int number = -1;
  const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (bad != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

Destination of_descriptor(const fs::path& path, int number) {
  return {.kind = Destination::Kind::descriptor, .path = path, .descriptor = number};
}

[[noreturn]] void refuse(const fs::path& path, std::string_view what) {
  throw_user_error("'{}' is {}; name a file", path.string(), what);
}

}  // namespace

Destination find_destination(const fs::path& path) {
  Destination found{.path = path};
  for (int links = 0;; ++links) {
    struct stat status {};
    if (::lstat(found.path.c_str(), &status) != 0) {
      if (errno != ENOENT) throw_user_error("'{}' cannot be written: {}", path.string(), std::generic_category().message(errno));
      if (const auto number = own_descriptor(found.path)) return of_descriptor(path, *number);  // a descriptor that is not open
      return found;  // nothing there yet, or no folder: opening it will tell
    }
    if (S_ISLNK(status.st_mode)) {
      if (links == kMostLinks) throw_user_error("'{}' cannot be written: its symbolic links form a loop", path.string());
      if (const auto number = own_descriptor(found.path)) return of_descriptor(path, *number);
      std::error_code error;
      const fs::path target = fs::read_symlink(found.path, error);
      if (error) throw_user_error("'{}' cannot be written: {}", path.string(), error.message());
      found.path = found.path.parent_path() / target;  // an absolute target replaces the whole path
      continue;
    }
    if (S_ISDIR(status.st_mode)) refuse(path, "a folder");
    if (S_ISBLK(status.st_mode)) refuse(path, "a block device");
    if (S_ISSOCK(status.st_mode)) refuse(path, "a socket");
    if (S_ISREG(status.st_mode)) {
      found.replaced = {.mode = status.st_mode, .user = status.st_uid, .group = status.st_gid};
    } else {
      found.kind = Destination::Kind::stream;
    }
    return found;
  }
}

}  // namespace snug::io
