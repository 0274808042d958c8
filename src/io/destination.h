// Where the bytes go that a user sends to a path: a shell's rules, but a file is replaced whole.
#pragma once

#include <filesystem>
#include <optional>
#include <sys/types.h>

namespace snug::io {

struct Destination {
  enum class Kind {
    file,        // a regular file, or nothing yet: a new file takes its name
    stream,      // a character device or a pipe: it is opened and written into
    descriptor,  // one that this process has open, such as /dev/stdout: it is written into
  };
  Kind kind = Kind::file;
  std::filesystem::path path;  // behind every symbolic link
  int descriptor = -1;         // of Kind::descriptor
  // Of the file that stands there, for the one that replaces it.
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
