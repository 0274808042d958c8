#include "analysis/cost.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/example_rows.h"
#include "ir/node_key.h"
#include "ir/op.h"

namespace snug {

namespace {

std::int64_t bytes_moved(const Section& section, const Node& node) {
  if (node.op->is_view) return 0;
  Bytes total;
  for (const ValueId id : node.inputs) total += section.value(id).type.bytes();
  for (const ValueId id : node.outputs) total += section.value(id).type.bytes();
  return total.count();
}

// `speed` is that of the node's products. Other nodes are bound by their bytes, so it does not matter for them.
double work_seconds(const CostTable& rates, double flops, double bytes, double speed) {
  return std::max(flops / (rates.flops_per_second * speed), bytes / rates.bytes_per_second);
}

// Orders the sizes of one family, independent of a table's rates.
double fixed_work(double flops, double bytes) { return work_seconds(CostTable{}, flops, bytes, 1); }

// The type that a node multiplies is its first operand's: images, or their gradient.
double product_speed(const ProductSpeeds& speeds, const Section& section, const Node& node) {
  return node.inputs.empty() ? 1 : speeds.of(section.value(node.inputs[0]).type.dtype);
}

// The same for a measured node, from the types of the operands in its key.
double product_speed(const ProductSpeeds& speeds, const NodeCost& node) {
  const auto has = [&](DType dtype) { return node.key.find(fmt::format(" {}[", name_of(dtype))) != std::string::npos; };
  return has(DType::bf16) ? speeds.bf16 : has(DType::f16) ? speeds.f16 : 1;
}

std::string by_kernel(const std::string& key, const std::string& kernel) { return key + " by " + kernel; }

// A type's text without its first dimension: f32[100x16x32x32] becomes f32[*x16x32x32].
std::string open_type(const Type& type) {
  std::string text = to_string(type);
  const std::size_t begin = text.find('[');
  if (begin == std::string::npos) return text;
  return text.replace(begin + 1, text.find_first_of("x]", begin) - begin - 1, "*");
}

std::string describe(const Section& section, const Node& node, bool open) {
  const auto type = [&](ValueId id) { return open ? open_type(section.value(id).type) : to_string(section.value(id).type); };
  std::string key(node.op->name);
  for (const auto& [name, value] : node.attributes.entries()) {
    if (name == "key") continue;  // says which random numbers, not how many
    // Real numbers, such as an image's mean, do not change the amount of work.
    if (std::holds_alternative<double>(value) || std::holds_alternative<std::vector<double>>(value)) continue;
    // Contains the number of examples, which the operands' types have too, or says which random numbers are drawn.
    if (open && (name == "input_shape" || name == kRowsPerExample)) continue;
    key += ' ';
    key += name;
    key += '=';
    std::visit([&](const auto& constant) { key += fmt::format("{}", constant); }, value);
  }
  for (const ValueId id : node.inputs) key += " " + type(id);
  key += " ->";
  for (const ValueId id : node.outputs) key += " " + type(id);
  return key;
}

// For each size, the family with that size left open wherever it occurs in a type: what a node has in common with the same one
// for another length, width or number of heads. "gelu f32[*x128x64] -> f32[*x128x64]" gives f32[*x?x64] and f32[*x128x?]. Found
// from the text, so that tables from files have them too.
std::vector<std::string> wider_families(const std::string& family) {
  struct Size {
    std::size_t begin, end;  // in the text
    std::string_view digits;
  };
  const std::string_view text = family;
  std::vector<Size> sizes;
  for (std::size_t open = text.find("[*"); open != std::string_view::npos; open = text.find("[*", open + 1)) {
    const std::size_t close = text.find(']', open);
    for (std::size_t at = text.find('x', open); at < close; at = text.find('x', at + 1)) {
      const std::size_t end = text.find_first_of("x]", at + 1);
      sizes.push_back({at + 1, end, text.substr(at + 1, end - at - 1)});
    }
  }
  std::vector<std::string> wider;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::string_view digits = sizes[i].digits;
    const auto is_same = [&](const Size& size) { return size.digits == digits; };
    // Dimensions of 1 are not sizes.
    if (digits == "1" || std::any_of(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(i), is_same)) continue;
    std::string& open = wider.emplace_back();
    std::size_t copied = 0;
    for (const Size& size : sizes) {
      if (!is_same(size)) continue;
      open.append(text, copied, size.begin - copied).append("?");
      copied = size.end;
    }
    open.append(text, copied);
  }
  return wider;
}

// Between two measured sizes log-linear interpolation, which fits a fixed and a growing part; beyond them in proportion to the
// nearest.
double sized_seconds(const std::vector<CostTable::Sized>& sizes, double work) {
  const auto above = std::lower_bound(sizes.begin(), sizes.end(), work,
                                      [](const CostTable::Sized& size, double value) { return size.work < value; });
  if (above == sizes.begin() || above == sizes.end()) {
    const CostTable::Sized& nearest = above == sizes.end() ? sizes.back() : *above;
    return nearest.work > 0 ? nearest.seconds * work / nearest.work : nearest.seconds;
  }
  const CostTable::Sized& below = *(above - 1);
  if (!(below.work > 0 && below.seconds > 0 && above->seconds > 0)) return above->seconds;
  const double part = std::log(work / below.work) / std::log(above->work / below.work);
  return below.seconds * std::pow(above->seconds / below.seconds, part);
}

std::optional<double> find_seconds(const CostTable& costs, const std::string& key) {
  const auto found = costs.measured.find(key);
  return found == costs.measured.end() ? std::nullopt : std::optional(found->second);
}

std::optional<double> find_sized(const CostTable& costs, const std::string& family, double work) {
  const auto found = costs.families.find(family);
  return found == costs.families.end() ? std::nullopt : std::optional(sized_seconds(found->second, work));
}

// Of the families with one size open, the one that was measured nearest to this much work.
std::optional<double> find_wider(const CostTable& costs, const std::vector<std::string>& families, const std::string& kernel,
                                 double work) {
  std::optional<double> seconds;
  double nearest = 0;  // distance as the logarithm of a ratio
  for (const std::string& family : families) {
    const auto found = costs.families.find(kernel.empty() ? family : by_kernel(family, kernel));
    if (found == costs.families.end()) continue;
    for (const CostTable::Sized& size : found->second) {
      if (!(size.work > 0 && work > 0)) continue;
      const double distance = std::abs(std::log(work / size.work));
      if (seconds && distance >= nearest) continue;
      nearest = distance;
      seconds = sized_seconds(found->second, work);
    }
  }
  return seconds;
}

std::optional<double> find_measured(const CostTable& costs, const Section& section, const Node& node, double work) {
  const std::string key = cost_key(section, node);
  if (costs.families.empty()) return find_seconds(costs, key);
  const std::string family = cost_family(section, node);
  if (!node.kernel.empty()) {
    if (const auto seconds = find_seconds(costs, by_kernel(key, node.kernel))) return seconds;
    if (const auto seconds = find_sized(costs, by_kernel(family, node.kernel), work)) return seconds;
  }
  if (const auto seconds = find_seconds(costs, key)) return seconds;
  if (const auto seconds = find_sized(costs, family, work)) return seconds;
  const std::vector<std::string> wider = wider_families(family);
  if (!node.kernel.empty()) {
    if (const auto seconds = find_wider(costs, wider, node.kernel, work)) return seconds;
  }
  return find_wider(costs, wider, "", work);
}

// Of two kernels measured under one name keeps the faster: the one that is chosen if its workspace fits.
void keep_faster(CostTable& costs, const std::string& family, double work, double seconds) {
  std::vector<CostTable::Sized>& sizes = costs.families[family];
  const auto place = std::lower_bound(sizes.begin(), sizes.end(), work,
                                      [](const CostTable::Sized& size, double value) { return size.work < value; });
  if (place != sizes.end() && place->work == work) {
    place->seconds = std::min(place->seconds, seconds);
  } else {
    sizes.insert(place, {.work = work, .seconds = seconds});
  }
}

void keep_faster(CostTable& costs, const NodeCost& node, const std::string& kernel, double work) {
  const auto name = [&](const std::string& text) { return kernel.empty() ? text : by_kernel(text, kernel); };
  const auto [at, added] = costs.measured.emplace(name(node.key), node.seconds);
  if (!added) at->second = std::min(at->second, node.seconds);
  keep_faster(costs, name(node.family), work, node.seconds);
  for (const std::string& family : wider_families(node.family)) keep_faster(costs, name(family), work, node.seconds);
}

}  // namespace

std::string cost_key(const Section& section, const Node& node) { return describe(section, node, false); }

std::string cost_family(const Section& section, const Node& node) { return describe(section, node, true); }

NodeCost describe_cost(const Section& section, const Node& node) {
  return {.key = cost_key(section, node),
          .family = cost_family(section, node),
          .kernel = node.kernel,
          .flops = static_cast<double>(count_flops(section, node)),
          .bytes = static_cast<double>(bytes_moved(section, node)),
          .seconds = 0};
}

CostTable make_cost_table(std::span<const NodeCost> nodes, const ProductSpeeds& speeds) {
  CostTable costs{.speeds = speeds};
  double flops = 0;
  double flop_seconds = 0;
  double bytes = 0;
  double byte_seconds = 0;
  for (const NodeCost& node : nodes) {
    const double work = fixed_work(node.flops, node.bytes);
    keep_faster(costs, node, "", work);
    if (!node.kernel.empty()) keep_faster(costs, node, node.kernel, work);
    const double speed = product_speed(speeds, node);
    if (node.flops / (costs.flops_per_second * speed) > node.bytes / costs.bytes_per_second) {
      flops += node.flops / speed;
      flop_seconds += node.seconds;
    } else {
      bytes += node.bytes;
      byte_seconds += node.seconds;
    }
  }
  if (flops > 0 && flop_seconds > 0) costs.flops_per_second = flops / flop_seconds;
  if (bytes > 0 && byte_seconds > 0) costs.bytes_per_second = bytes / byte_seconds;
  return costs;
}

double node_seconds(const CostTable& costs, const Section& section, const Node& node) {
  const auto flops = static_cast<double>(count_flops(section, node));
  const auto bytes = static_cast<double>(bytes_moved(section, node));
  if (!costs.measured.empty()) {
    if (const auto seconds = find_measured(costs, section, node, fixed_work(flops, bytes))) return *seconds;
  }
  return costs.seconds_per_node + work_seconds(costs, flops, bytes, product_speed(costs.speeds, section, node));
}

bool is_measured_with_kernel(const CostTable& costs, const Section& section, const Node& node) {
  return costs.measured.contains(by_kernel(cost_key(section, node), node.kernel)) ||
         costs.families.contains(by_kernel(cost_family(section, node), node.kernel));
}

std::int64_t microbatches(const Program& program) { return (program.batch + program.microbatch - 1) / program.microbatch; }

namespace {

// Deep networks repeat the same few dozen kinds of nodes, and a table's keys are long texts.
class SecondsByKind {
 public:
  explicit SecondsByKind(const CostTable& costs) : costs_(costs) {}

  double seconds(const Section& section, const Node& node) {
    const NodeTypes types = types_of(section, node);
    const auto [found, is_new] =
        known_.try_emplace(by_kernel(node_key(*node.op, node.attributes, types.inputs, types.outputs), node.kernel), 0);
    if (is_new) found->second = node_seconds(costs_, section, node);
    return found->second;
  }

 private:
  const CostTable& costs_;
  std::unordered_map<std::string, double> known_;
};

}  // namespace

std::int64_t runs_per_step(const Program& program, const Section& section) {
  if (section.shape != RunShape{}) return 0;
  switch (schedule_of(section.kind)) {
    case Schedule::per_microbatch:
      return microbatches(program);
    case Schedule::per_step:
      return 1;
    default:
      return 0;
  }
}

double step_seconds(const CostTable& costs, const Program& program) {
  SecondsByKind known(costs);
  double seconds = 0;
  for (const Section& section : program.sections) {
    const std::int64_t runs = runs_per_step(program, section);
    if (runs == 0) continue;
    double once = 0;
    for (const Node& node : section.nodes) once += known.seconds(section, node);
    seconds += static_cast<double>(runs) * once;
  }
  return seconds;
}

}  // namespace snug
