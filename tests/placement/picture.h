// Problems and placements as pictures: time runs to the right, addresses upwards.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "placement/problem.h"

namespace snug::placement {

// "..###." is alive at the steps 2, 3 and 4. Sizes are in rows of kAlignment bytes.
struct Life {
  std::string_view steps;
  std::int64_t rows = 1;
};

inline Problem problem_of(const std::vector<Life>& lives) {
  Problem problem;
  for (const Life& life : lives) {
    problem.items.push_back({kAlignment * life.rows, static_cast<std::int32_t>(life.steps.find_first_of('#')),
                             static_cast<std::int32_t>(life.steps.find_last_of('#') + 1)});
  }
  return problem;
}

// One string for each row of kAlignment bytes, the highest first; the first item is 'A', and so on.
using Picture = std::vector<std::string>;

inline Picture draw(const Problem& problem, const Placement& placement) {
  std::int32_t steps = 0;
  for (const Item& item : problem.items) steps = std::max(steps, item.end);
  const auto rows = static_cast<std::size_t>(round_up(placement.height, kAlignment).count() / kAlignment.count());
  Picture picture(rows, std::string(static_cast<std::size_t>(steps), '.'));
  for (std::size_t i = 0; i < problem.items.size(); ++i) {
    const auto first = static_cast<std::size_t>(placement.offsets[i].count() / kAlignment.count());
    const auto count = static_cast<std::size_t>(round_up(problem.items[i].size, kAlignment).count() / kAlignment.count());
    for (std::size_t row = first; row < first + count; ++row) {
      for (std::int32_t step = problem.items[i].begin; step < problem.items[i].end; ++step) {
        picture.at(rows - 1 - row).at(static_cast<std::size_t>(step)) = static_cast<char>('A' + i);
      }
    }
  }
  return picture;
}

// The other way round: every letter is one rectangle.
struct Drawn {
  Problem problem;
  Placement placement;
};

inline Drawn read_picture(const Picture& picture) {
  Drawn drawn;
  for (char letter = 'A'; letter <= 'Z'; ++letter) {
    std::size_t first_row = picture.size();
    std::size_t rows = 0;
    std::string_view steps;
    for (std::size_t row = 0; row < picture.size(); ++row) {
      const std::string& line = picture[picture.size() - 1 - row];
      if (line.find(letter) == std::string::npos) continue;
      first_row = std::min(first_row, row);
      rows = row - first_row + 1;
      steps = line;
    }
    if (rows == 0) break;
    drawn.problem.items.push_back({kAlignment * static_cast<std::int64_t>(rows),
                                   static_cast<std::int32_t>(steps.find_first_of(letter)),
                                   static_cast<std::int32_t>(steps.find_last_of(letter) + 1)});
    drawn.placement.offsets.push_back(kAlignment * static_cast<std::int64_t>(first_row));
    drawn.placement.height = std::max(drawn.placement.height, kAlignment * static_cast<std::int64_t>(first_row + rows));
  }
  return drawn;
}

}  // namespace snug::placement
