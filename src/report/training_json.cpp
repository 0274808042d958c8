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

// Such as the nonzeros of every layer.
bool has_parts(const Json& line) {
  return std::any_of(line.begin(), line.end(), [](const Json& value) { return value.is_object(); });
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

  // Lines with parts are long and rare; they are thinned out separately.
  const auto stride = [](std::size_t count, std::size_t most) { return std::max<std::size_t>(1, (count + most - 1) / most); };
  const std::size_t with_parts = static_cast<std::size_t>(std::count_if(lines.begin(), lines.end(), has_parts));
  const std::size_t every = stride(lines.size() - with_parts, std::max<std::size_t>(1, most_lines));
  const std::size_t every_with_parts = stride(with_parts, std::max<std::size_t>(1, most_lines / 8));
  Json columns = {{"step", Json::array()}};
  std::size_t rows = 0;
  std::size_t seen = 0;
  std::size_t seen_with_parts = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool due = has_parts(lines[i]) ? seen_with_parts++ % every_with_parts == 0 : seen++ % every == 0;
    const bool last = i + 1 == lines.size();
    if (!due && !last && !has_test(lines[i])) continue;
    const auto put = [&](const std::string& key, const Json& value) {
      if (!value.is_number()) return;
      Json& column = columns[key];
      while (column.size() < rows) column.push_back(nullptr);
      if (column.size() == rows) column.push_back(value);  // not twice, as in {"a": {"b": 1}, "a.b": 2}
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
