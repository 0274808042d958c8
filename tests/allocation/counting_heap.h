// Counts what the heap is asked for, and by whom: this program's own code, or a library.
#pragma once

#include <cstdint>

namespace snug::allocation {

struct HeapUse {
  std::int64_t own_calls = 0;      // made by code of this program
  std::int64_t library_calls = 0;  // made by shared libraries
  std::int64_t live_bytes = 0;     // allocated and not yet freed, by anyone
  std::int64_t largest_own = 0;    // bytes of the largest single call of this program's code since forget_largest()
};

// Since the program began. Always zeros under a sanitizer, which brings a heap of its own.
HeapUse heap_use();
bool heap_is_counted();
void forget_largest();

}  // namespace snug::allocation
