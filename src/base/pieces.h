// What may be too large for a copy of itself in host memory (a state, a tensor of a file) moves a piece at a time.
#pragma once

#include <algorithm>
#include <cstddef>

namespace snug {

// Large enough that a read of a file or a copy to a GPU is mostly copying, small beside any process.
inline constexpr std::size_t kPieceBytes = std::size_t{256} << 10U;

// body(begin, size) for pieces of `most` that follow each other and cover [0, total); the last may be shorter.
template <typename Body>
void for_each_piece(std::size_t total, std::size_t most, const Body& body) {
  for (std::size_t begin = 0; begin < total; begin += most) body(begin, std::min(most, total - begin));
}

}  // namespace snug
