// Sizes of microbatches that a search looks at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace snug {

// Sizes that split the batch evenly, largest first: the batch itself, its half, its third, ... down to the smallest allowed.
std::vector<std::int64_t> even_splits(std::int64_t batch, std::int64_t least);
// The same in multiples of a group, except for the batch itself.
std::vector<std::int64_t> even_splits_in_groups(std::int64_t batch, std::int64_t group);
// At most `most` of them, the first and the last included, with about the same ratio between neighbors.
std::vector<std::int64_t> thin_out(const std::vector<std::int64_t>& sizes, std::size_t most);

}  // namespace snug
