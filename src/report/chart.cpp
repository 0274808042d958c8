#include "report/chart.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace snug::report {

namespace {

constexpr std::array<std::string_view, 9> kLower{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<std::string_view, 8> kLeft{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
constexpr std::string_view kShade = "░";

std::string repeat(std::string_view piece, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += piece;
  return result;
}

}  // namespace

std::string draw_bar(double share, int width) {
  const auto eighths = static_cast<int>(std::clamp<long>(std::lround(share * width * 8), 0, static_cast<long>(width) * 8));
  return repeat("█", eighths / 8) + std::string(kLeft[static_cast<std::size_t>(eighths % 8)]);
}

std::vector<double> to_columns(std::span<const double> values, int width) {
  std::vector<double> columns;
  const auto n = values.size();
  const auto w = static_cast<std::size_t>(width);
  for (std::size_t c = 0; c < w && n > 0; ++c) {
    const std::size_t begin = c * n / w;
    const std::size_t end = std::max(begin + 1, (c + 1) * n / w);
    columns.push_back(*std::max_element(values.begin() + static_cast<std::ptrdiff_t>(begin),
                                        values.begin() + static_cast<std::ptrdiff_t>(end)));
  }
  return columns;
}

std::vector<std::string> draw_area(std::span<const double> heights, double floor, int rows) {
  std::vector<std::string> lines;
  for (int row = rows - 1; row >= 0; --row) {
    std::string line;
    for (const double height : heights) {
      // Shade and height cannot share a cell: it is shaded when the shade fills at least half of it.
      const bool shaded = std::min(height, floor) * rows >= row + 0.5;
      const auto eighths = std::clamp<long>(std::lround((height * rows - row) * 8), 0, 8);
      line += shaded ? kShade : kLower[static_cast<std::size_t>(eighths)];
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string draw_axis(std::span<const Stretch> stretches) {
  std::string line = "└";
  int at = 0;
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    const int width = std::max(0, stretches[i].end - at - 1);  // the corner takes the last column
    const auto name_width = static_cast<int>(stretches[i].name.size()) + 3;
    if (name_width <= width) {
      line += "─ ";
      line += stretches[i].name;
      line += " ";
      line += repeat("─", width - name_width);
    } else {
      line += repeat("─", width);
    }
    line += i + 1 < stretches.size() ? "┴" : "┘";
    at = std::max(at, stretches[i].end);
  }
  return line;
}

std::string draw_mark(int column, std::string_view label, int width) {
  const auto label_width = static_cast<int>(label.size()) + 1;
  if (column + 1 + label_width <= width) return std::string(static_cast<std::size_t>(column), ' ') + "▲ " + std::string(label);
  return std::string(static_cast<std::size_t>(std::max(0, column - label_width)), ' ') + std::string(label) + " ▲";
}

int columns_of(std::string_view text) {
  // Every byte of UTF-8 but the first of a character has the form 10xxxxxx.
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace snug::report
