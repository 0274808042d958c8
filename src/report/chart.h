// Bars and curves in block characters. Numbers in, text out.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace snug::report {

// A bar of `share` (0 to 1) of `width` columns, to the nearest eighth of a column.
std::string draw_bar(double share, int width);

// Values as `width` columns, each the largest of the values that fall into it; fewer values than columns are repeated.
std::vector<double> to_columns(std::span<const double> values, int width);

// Columns of heights 0 to 1 as `rows` lines, top first, each as wide as there are columns. What lies below `floor` is shaded.
std::vector<std::string> draw_area(std::span<const double> heights, double floor, int rows);

// Named stretches side by side as one line: "└─ forward ───┴─ backward ──┴─ update ─┘". One that is too narrow has no name.
struct Stretch {
  std::string_view name;
  int end = 0;  // one past its last column
};
std::string draw_axis(std::span<const Stretch> stretches);

// "▲ label" with the mark in `column`, or "label ▲" where that would not fit in `width` columns.
std::string draw_mark(int column, std::string_view label, int width);

// Width on a terminal, in columns, of a text of ASCII and this file's block characters.
int columns_of(std::string_view text);

}  // namespace snug::report
