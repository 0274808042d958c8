#include "io/cost_file.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <system_error>

#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "base/error.h"
#include "base/printable.h"
#include "io/file_io.h"

namespace snug::io {

namespace {

using Json = nlohmann::ordered_json;

// Raised when the meaning of keys, families or times changes.
constexpr int kFormat = 1;
// Thousands of nodes take about a megabyte; a larger file is not a cost file.
constexpr std::uint64_t kMostBytes = 256 << 20;

NodeCost parse_node(const Json& json) {
  NodeCost node{.key = json.at("key").get<std::string>(),
                .family = json.at("family").get<std::string>(),
                .kernel = json.at("kernel").get<std::string>(),
                .flops = json.at("flops").get<double>(),
                .bytes = json.at("bytes").get<double>(),
                .seconds = json.at("seconds").get<double>()};
  const auto possible = [](double value) { return std::isfinite(value) && value >= 0; };
  if (!possible(node.flops) || !possible(node.bytes) || !possible(node.seconds))
    throw UserError("a node's figures are not possible");
  return node;
}

}  // namespace

CostKey cost_key_of(const Backend& backend) {
  return {.backend = std::string(backend.name), .machine = backend.machine, .threads = backend.threads};
}

std::optional<std::filesystem::path> default_cost_file(const CostKey& key) {
  const auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
  };
  std::filesystem::path cache = set("XDG_CACHE_HOME");
  if (cache.empty()) {
    if (set("HOME").empty()) return std::nullopt;
    cache = std::filesystem::path(set("HOME")) / ".cache";
  }
  return cache / "snug" / fmt::format("costs-{}-{}.json", key.backend, key.threads);
}

std::vector<NodeCost> parse_costs(std::string_view text, const CostKey& key, std::string_view source) {
  std::vector<NodeCost> nodes;
  CostKey found;
  try {
    const Json json = Json::parse(text);
    const int format = json.at("format").get<int>();
    if (format != kFormat)
      throw_user_error("the costs in '{}' have format {}, and this Snug reads format {}; measure them again", source, format,
                       kFormat);
    found = {.backend = json.at("backend").get<std::string>(),
             .machine = json.at("machine").get<std::string>(),
             .threads = json.at("threads").get<int>()};
    for (const Json& node : json.at("nodes")) nodes.push_back(parse_node(node));
  } catch (const Json::exception& error) {
    throw_user_error("'{}' is not a valid file of measured costs; measure them again", source);
  }
  if (found != key) {
    throw_user_error("the costs in '{}' were measured with {} on {} with {}, not with {} on {} with {}; measure them again",
                     source, printable(found.backend), printable(found.machine), counted(found.threads, "thread"), key.backend,
                     key.machine, key.threads);
  }
  return nodes;
}

std::vector<NodeCost> read_cost_file(const std::filesystem::path& path, const CostKey& key) {
  return parse_costs(read_text_file(path, kMostBytes), key, path.string());
}

void write_cost_file(const std::filesystem::path& path, const CostKey& key, std::span<const NodeCost> nodes) {
  if (path.has_parent_path()) {
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error) throw_user_error("the folder '{}' cannot be made: {}", path.parent_path().string(), error.message());
  }
  const Json header{{"format", kFormat}, {"backend", key.backend}, {"machine", key.machine}, {"threads", key.threads}};
  // One line per node, so that the file is readable and can be compared.
  std::string text = header.dump();
  text.back() = ',';
  text += "\"nodes\":[";
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const NodeCost& node = nodes[i];
    text += i == 0 ? "\n" : ",\n";
    text += Json{{"key", node.key},     {"family", node.family}, {"kernel", node.kernel},
                 {"flops", node.flops}, {"bytes", node.bytes},   {"seconds", node.seconds}}
                .dump();
  }
  write_text_file(path, text + "\n]}\n");
}

void merge_costs(std::vector<NodeCost>& known, std::span<const NodeCost> measured) {
  for (const NodeCost& node : measured) {
    const auto same =
        std::ranges::find_if(known, [&](const NodeCost& other) { return other.key == node.key && other.kernel == node.kernel; });
    if (same == known.end()) {
      known.push_back(node);
    } else {
      *same = node;
    }
  }
}

}  // namespace snug::io
