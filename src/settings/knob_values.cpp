// What a knob's value is in a recipe: read from flags, checked, compared and printed, by the type of its slot.
#include <algorithm>
#include <charconv>
#include <type_traits>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/nearest.h"
#include "settings/knobs.h"

namespace snug::settings {

namespace {

template <typename T>
constexpr bool kIsOptional = false;
template <typename T>
constexpr bool kIsOptional<std::optional<T>> = true;
template <typename T>
constexpr bool kIsList = false;
template <typename T>
constexpr bool kIsList<std::vector<T>> = true;

// What lies in the slot, for reading.
template <typename Visitor>
auto visit(const Knob& knob, const Recipe& recipe, const Visitor& visitor) {
  // A slot of a recipe that nobody writes to.
  const Slot slot = knob.slot(const_cast<Recipe&>(recipe));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  return std::visit([&](const auto* value) { return visitor(*value); }, slot);
}

std::string toml_text(const std::string& text) {
  // A JSON text is a TOML text but for one character, which JSON lets stand as it is.
  std::string quoted;
  for (const char c : nlohmann::json(text).dump()) quoted += c == 0x7F ? std::string("\\u007F") : std::string(1, c);
  return quoted;
}

// In the largest unit that says it exactly.
std::string exact_bytes(Bytes size) {
  for (const auto& [unit, factor] : {std::pair{"MB", 1'000'000}, std::pair{"KB", 1000}}) {
    if (size.count() % factor == 0) return fmt::format("{}{}", size.count() / factor, unit);
  }
  return fmt::format("{}B", size.count());
}

// As help shows it.
template <typename T>
std::string shown(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return value;
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "yes" : "no";
  } else if constexpr (std::is_same_v<T, Bytes>) {
    return exact_bytes(value);
  } else if constexpr (std::is_same_v<T, DType>) {
    return std::string(precision_name(value));
  } else if constexpr (std::is_same_v<T, CheckpointStrategy>) {
    return to_string(value);
  } else if constexpr (kIsOptional<T>) {
    return value ? shown(*value) : std::string();
  } else if constexpr (kIsList<T>) {
    return fmt::format("{}", fmt::join(value, ","));
  } else {
    return fmt::format("{}", value);
  }
}

template <typename T>
std::string toml(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return toml_text(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_same_v<T, Bytes> || std::is_same_v<T, DType> || std::is_same_v<T, CheckpointStrategy>) {
    return fmt::format("\"{}\"", shown(value));
  } else if constexpr (kIsOptional<T>) {
    return toml(*value);
  } else if constexpr (kIsList<T>) {
    std::vector<std::string> items;
    items.reserve(value.size());
    for (const auto& item : value) items.push_back(toml(item));
    return fmt::format("[{}]", fmt::join(items, ", "));
  } else {
    return fmt::format("{}", value);
  }
}

std::optional<std::string> objection_to_text(const std::string& text) {
  if (text.empty()) return "must not be empty";
  try {
    nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    return "is not UTF-8";
  }
  return std::nullopt;
}

std::optional<std::string> objection(const Knob& knob, const std::string& text) {
  const auto* choices = std::get_if<Choices>(&knob.values);
  if (choices == nullptr) return objection_to_text(text);
  if (std::ranges::find(*choices, text) != choices->end()) return std::nullopt;
  return fmt::format("is '{}'; it can be {}{}", text, fmt::join(*choices, ", "), did_you_mean(text, *choices));
}
std::optional<std::string> objection(const Knob& knob, std::int64_t count) {
  if (const auto* choices = std::get_if<Choices>(&knob.values)) {
    if (std::ranges::find(*choices, fmt::format("{}", count)) != choices->end()) return std::nullopt;
    return fmt::format("is {}; it can be {}", count, fmt::join(*choices, ", "));
  }
  const auto& range = std::get<CountRange>(knob.values);
  if (range.holds(count)) return std::nullopt;
  return fmt::format("{}, not {}", describe(range), count);
}
std::optional<std::string> objection(const Knob& knob, std::uint64_t count) {
  const auto most = static_cast<std::uint64_t>(std::get<CountRange>(knob.values).most);
  if (count <= most) return std::nullopt;
  return fmt::format("must be below 2^63");
}
std::optional<std::string> objection(const Knob& knob, double number) {
  const auto* range = std::get_if<NumberRange>(&knob.values);
  if (range == nullptr || range->holds(number)) return std::nullopt;
  return fmt::format("{}, not {}", describe(*range), number);
}
std::optional<std::string> objection(const Knob& /*knob*/, bool /*value*/) { return std::nullopt; }
std::optional<std::string> objection(const Knob& /*knob*/, DType /*value*/) { return std::nullopt; }
std::optional<std::string> objection(const Knob& /*knob*/, const CheckpointStrategy& /*value*/) { return std::nullopt; }
std::optional<std::string> objection(const Knob& /*knob*/, Bytes size) {
  if (size > Bytes(0)) return std::nullopt;
  return "must be more than 0 bytes";
}
template <typename T>
std::optional<std::string> objection(const Knob& knob, const std::optional<T>& value) {
  return value ? objection(knob, *value) : std::nullopt;
}
template <typename T>
std::optional<std::string> objection(const Knob& knob, const std::vector<T>& values) {
  for (const T& value : values) {
    if (auto found = objection(knob, value)) return found;
  }
  return std::nullopt;
}

double parse_number(const Knob& knob, std::string_view name, std::string_view text) {
  return parse_number(name, text, std::get<NumberRange>(knob.values));
}

std::int64_t parse_choice(std::string_view name, Choices choices, std::string_view text) {
  if (std::ranges::find(choices, text) == choices.end())
    throw_user_error("{} is '{}'; it can be {}", name, text, fmt::join(choices, ", "));
  return parse_count(name, text, {.least = 0, .most = std::numeric_limits<std::int64_t>::max()});
}

std::vector<std::string> split_list(std::string_view name, std::string_view kind, std::string_view text) {
  std::vector<std::string> items;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    if (item.empty()) throw_user_error("{} takes {} with a comma between them, not '{}'", name, kind, text);
    items.emplace_back(item);
    if (comma == std::string_view::npos) return items;
    rest.remove_prefix(comma + 1);
  }
}

// The last of the texts counts, but where they are a list.
struct Taker {
  const Knob& knob;
  std::string_view name;
  std::span<const std::string> texts;

  const std::string& text() const { return texts.back(); }

  void operator()(std::string* value) const { *value = text(); }
  void operator()(bool* value) const {
    if (text() != "yes" && text() != "no") throw_user_error("{} is yes or no, not '{}'", name, text());
    *value = text() == "yes";
  }
  void operator()(std::int64_t* value) const {
    const auto* choices = std::get_if<Choices>(&knob.values);
    *value =
        choices == nullptr ? parse_count(name, text(), std::get<CountRange>(knob.values)) : parse_choice(name, *choices, text());
  }
  void operator()(std::uint64_t* value) const {
    *value = static_cast<std::uint64_t>(parse_count(name, text(), std::get<CountRange>(knob.values)));
  }
  void operator()(double* value) const { *value = parse_number(knob, name, text()); }
  void operator()(std::optional<Bytes>* value) const { *value = parse_size(name, text()); }
  void operator()(std::optional<DType>* value) const {
    *value = parse_precision(text());
    if (*value) return;
    const auto& choices = std::get<Choices>(knob.values);
    throw_user_error("{} is '{}'; it can be {}{}", name, text(), fmt::join(choices, ", "), did_you_mean(text(), choices));
  }
  void operator()(std::optional<CheckpointStrategy>* value) const { *value = parse_checkpoint_strategy(text()); }
  void operator()(std::vector<std::string>* values) const {
    *values = knob.repeats ? std::vector(texts.begin(), texts.end()) : split_list(name, "words", text());
  }
  void operator()(std::vector<double>* values) const {
    values->clear();
    for (const std::string& item : split_list(name, "numbers", text())) values->push_back(parse_number(knob, name, item));
  }
  template <typename T>
  void operator()(std::optional<T>* value) const {
    T taken{};
    (*this)(&taken);
    *value = std::move(taken);
  }
};

}  // namespace

std::string describe(const CountRange& range) {
  return fmt::format("takes a whole number from {} to {}", range.least, range.most);
}

std::string describe(const NumberRange& range) {
  if (range.least_included) return fmt::format("takes a number from {} to {}", range.least, range.most);
  return fmt::format("takes a number above {}, up to {}", range.least, range.most);
}

std::string help_of(const Knob& knob) {
  std::string otherwise(knob.otherwise);
  const bool is_switch = knob.argument.empty();
  if (otherwise.empty() && !is_switch) otherwise = visit(knob, Recipe(), [](const auto& value) { return shown(value); });
  return otherwise.empty() ? std::string(knob.help) : fmt::format("{} (default: {})", knob.help, otherwise);
}

std::vector<std::string_view> example_values(const Knob& knob) {
  if (const auto* choices = std::get_if<Choices>(&knob.values)) return {choices->begin(), choices->end()};
  if (!knob.suggested.empty()) return {knob.suggested.begin(), knob.suggested.end()};
  const bool is_yes_or_no = visit(knob, Recipe(), [](const auto& value) {
    using T = std::decay_t<decltype(value)>;
    return std::is_same_v<T, bool> || std::is_same_v<T, std::optional<bool>>;
  });
  return is_yes_or_no && !knob.argument.empty() ? std::vector<std::string_view>{"yes", "no"} : std::vector<std::string_view>{};
}

bool takes_list(const Knob& knob) {
  return !knob.repeats && visit(knob, Recipe(), [](const auto& value) { return kIsList<std::decay_t<decltype(value)>>; });
}

std::optional<std::string> objection_to(const Knob& knob, const Recipe& recipe) {
  if (knob.key != "model" && is_same(knob, recipe, Recipe())) return std::nullopt;
  return visit(knob, recipe, [&](const auto& value) { return objection(knob, value); });
}

void take(const Knob& knob, std::span<const std::string> texts, Recipe& recipe, SaidBy said_by) {
  SNUG_CHECK(!texts.empty(), "'{}' was given nothing", knob.key);
  std::visit(Taker{.knob = knob, .name = name_of(knob, said_by), .texts = texts}, knob.slot(recipe));
}

void reset(const Knob& knob, Recipe& recipe) {
  Recipe untold;
  std::visit([&](auto* value) { *value = std::move(*std::get<decltype(value)>(knob.slot(untold))); }, knob.slot(recipe));
}

bool is_same(const Knob& knob, const Recipe& one, const Recipe& other) {
  return visit(knob, one, [&](const auto& value) {
    return visit(knob, other, [&](const auto& other_value) {
      if constexpr (std::is_same_v<decltype(value), decltype(other_value)>) {
        return value == other_value;
      } else {
        return false;  // one knob has one type
      }
    });
  });
}

bool is_told(const Knob& knob, const Recipe& recipe) {
  return visit(knob, recipe, [](const auto& value) {
    if constexpr (kIsOptional<std::decay_t<decltype(value)>>) return value.has_value();
    return true;
  });
}

std::string show_value(const Knob& knob, const Recipe& recipe) {
  return visit(knob, recipe, [](const auto& value) { return shown(value); });
}

std::string print_value(const Knob& knob, const Recipe& recipe) {
  return visit(knob, recipe, [](const auto& value) { return toml(value); });
}

std::int64_t parse_count(std::string_view flag, std::string_view text, const CountRange& range) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !range.holds(value))
    throw_user_error("{} {}, not '{}'", flag, describe(range), text);
  return value;
}

double parse_number(std::string_view flag, std::string_view text, const NumberRange& range) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !range.holds(value))
    throw_user_error("{} {}, not '{}'", flag, describe(range), text);
  return value;
}

Bytes parse_size(std::string_view flag, std::string_view text) {
  try {
    return parse_bytes(text);
  } catch (const UserError& error) {
    throw_user_error("{}: {}", flag, error.what());
  }
}

}  // namespace snug::settings
