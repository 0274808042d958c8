// What somebody meant who mistyped a name.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace snug {

// How many letters have to be changed, added, left out or swapped with their neighbor.
std::size_t edit_distance(std::string_view a, std::string_view b);
// ... before `name` begins with `prefix`.
std::size_t edits_to_begin_with(std::string_view prefix, std::string_view name);

// The name that was probably meant: at most two such letters away, begun or continued (`micro` for `microbatch`, `batch-size` for
// `batch`), or abbreviated (`lr` for `learning_rate`). Leading dashes, capitals, and whether words are joined by - or _ make no
// difference, but numbers are never mistaken. Nothing where no name is that near.
std::optional<std::string_view> nearest(std::string_view text, std::span<const std::string_view> names);

// "; did you mean --steps?" for the end of a message, or nothing.
std::string did_you_mean(std::string_view text, std::span<const std::string_view> names);

}  // namespace snug
