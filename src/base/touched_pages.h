// Which pages of files (the program, its libraries) this process has in memory. A forked process does not count those that its
// parent has touched until it touches them too; this is how far its own count falls short of one process that did the work of
// both.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace snug {

class TouchedPages {
 public:
  // Of this process, now. None where the system does not say.
  static TouchedPages now();

  // What is touched here and not in `other`.
  Bytes not_in(const TouchedPages& other) const;

 private:
  struct Mapping {
    std::uint64_t begin = 0;  // the first page's number
    std::vector<bool> is_touched;
  };
  std::vector<Mapping> mappings_;  // of files, by address
};

}  // namespace snug
