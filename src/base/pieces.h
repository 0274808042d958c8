// What may be too large for a copy in host memory (a state, a tensor of a file) is moved a piece at a time.
#pragma once

#include <algorithm>
#include <cstddef>

namespace snug {

// Large enough that overhead per read or copy to a GPU is small, and small compared to any process.
inline constexpr std::size_t kPieceBytes = std::size_t{256} << 10U;

// Calls body(begin, size) for consecutive pieces of `most` that cover [0, total); the last may be shorter.
template <typename Body>
void for_each_piece(std::size_t total, std::size_t most, const Body& body) {
  for (std::size_t begin = 0; begin < total; begin += most) body(begin, std::min(most, total - begin));
}

}  // namespace snug
