#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "report/page.h"

namespace snug::report {

using Json = nlohmann::ordered_json;

namespace {

bool has_test(const Json& line) {
  return std::any_of(line.items().begin(), line.items().end(),
                     [](const auto& entry) { return entry.key().starts_with("test_"); });
}

}  // namespace

Json training_json(std::string_view metrics, std::size_t most_lines) {
  std::vector<Json> lines;
  std::int64_t damaged = 0;
  while (!metrics.empty()) {
    const std::string_view text = metrics.substr(0, metrics.find('\n'));
    metrics.remove_prefix(std::min(metrics.size(), text.size() + 1));
    if (text.empty()) continue;
    Json line = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    const bool good = line.is_object() && line.contains("step") && line["step"].is_number();
    if (good) {
      lines.push_back(std::move(line));
    } else {
      ++damaged;
    }
  }

  const std::size_t every = std::max<std::size_t>(1, (lines.size() + most_lines - 1) / std::max<std::size_t>(1, most_lines));
  Json columns = {{"step", Json::array()}};
  std::size_t rows = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool last = i + 1 == lines.size();
    if (i % every != 0 && !last && !has_test(lines[i])) continue;
    const auto put = [&](const std::string& key, const Json& value) {
      if (!value.is_number()) return;
      Json& column = columns[key];
      while (column.size() < rows) column.push_back(nullptr);
      column.push_back(value);
    };
    for (const auto& [key, value] : lines[i].items()) {
      put(key, value);
      if (!value.is_object()) continue;
      for (const auto& [part, number] : value.items()) put(fmt::format("{}.{}", key, part), number);
    }
    ++rows;
  }
  for (auto& column : columns) {
    while (column.size() < rows) column.push_back(nullptr);
  }
  return {{"columns", std::move(columns)}, {"one_line_in", every}, {"damaged_lines", damaged}};
}

}  // namespace snug::report
