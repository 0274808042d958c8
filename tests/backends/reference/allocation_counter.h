// How often this program has called operator new, in all threads: linking allocation_counter.cpp replaces it.
#pragma once

#include <cstdint>

namespace snug::backends {

std::int64_t allocation_count();

}  // namespace snug::backends
