// Where output to a user's path goes: as in a shell, except that a file is replaced as a whole.
#pragma once

#include <filesystem>
#include <optional>
#include <sys/types.h>

namespace snug::io {

struct Destination {
  enum class Kind {
    file,        // a regular file, or nothing yet: a new file gets its name
    stream,      // a character device or a pipe: it is opened and written into
    descriptor,  // one that this process has open, such as /dev/stdout: it is written into
  };
  Kind kind = Kind::file;
  std::filesystem::path path;  // with every symbolic link resolved
  int descriptor = -1;         // of Kind::descriptor
  // Owner and mode of the existing file, for the one that replaces it.
  struct Owned {
    mode_t mode = 0;
    uid_t user = 0;
    gid_t group = 0;
  };
  std::optional<Owned> replaced;
};

// UserError about links that form a loop, and about what cannot be written: a folder, a block device, a socket.
Destination find_destination(const std::filesystem::path& path);

}  // namespace snug::io
