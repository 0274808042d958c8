#include "base/nearest.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <numeric>
#include <vector>

#include <fmt/format.h>

namespace snug {

namespace {

constexpr std::size_t kMostEdits = 2;

// Small letters, words joined by underscores, no dashes in front.
std::string plain(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of('-'), text.size()));
  std::string result(text);
  for (char& c : result) c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::string digits(std::string_view text) {
  std::string result;
  std::ranges::copy_if(text, std::back_inserter(result), [](unsigned char c) { return std::isdigit(c) != 0; });
  return result;
}

// "lr" of "learning_rate"; nothing of a single word.
std::string initials(std::string_view name) {
  std::string result;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (i == 0 || name[i - 1] == '_') result += name[i];
  }
  return result.size() > 1 ? result : std::string();
}

// From `a` to the first j letters of `b`, for every j.
std::vector<std::size_t> edits_to_beginnings(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);  // the row of a[i-2]
  std::vector<std::size_t> above(b.size() + 1);   // of a[i-1]
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(above);
    above.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1), row[j - 1] + 1, above[j] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row;
}

// How unlikely it is that `text` stands for `name`, both plain; nothing: it does not.
std::optional<std::size_t> unlikeliness(std::string_view text, std::string_view name) {
  const std::size_t longer = std::max(text.size(), name.size());
  const std::size_t excess = longer - std::min(text.size(), name.size());
  if (excess <= kMostEdits && digits(text) == digits(name)) {  // another number is another thing: resnet_34 is not resnet_18
    const std::size_t edits = edit_distance(text, name);
    // Of two or three letters too little is left to tell what was meant: "tpu" is not "cpu".
    if (edits == 0 || (edits <= kMostEdits && text.size() >= edits + 3)) return edits;
  }
  const bool is_begun = text.size() >= 2 && name.starts_with(text);
  const bool is_continued = name.size() >= 3 && text.starts_with(name);
  if (is_begun || is_continued) return kMostEdits + excess;
  if (!text.empty() && initials(name) == text) return kMostEdits + 1;
  return std::nullopt;
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) { return edits_to_beginnings(a, b).back(); }

std::size_t edits_to_begin_with(std::string_view prefix, std::string_view name) {
  return std::ranges::min(edits_to_beginnings(prefix, name));
}

std::optional<std::string_view> nearest(std::string_view text, std::span<const std::string_view> names) {
  const std::string meant = plain(text);
  std::optional<std::string_view> best;
  std::size_t least = 0;
  for (const std::string_view name : names) {
    const auto found = unlikeliness(meant, plain(name));
    if (!found || (best && *found >= least)) continue;
    best = name;
    least = *found;
  }
  return best;
}

std::string did_you_mean(std::string_view text, std::span<const std::string_view> names) {
  const auto found = nearest(text, names);
  return found ? fmt::format("; did you mean {}?", *found) : std::string();
}

}  // namespace snug
