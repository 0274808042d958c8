// The keys of a recipe, the flags of the command that mean the same, and what their numbers may be. Recipes and flags both read
// this table, so that they cannot disagree.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace snug::settings {

struct CountRange {
  std::int64_t least = 0;
  std::int64_t most = 0;
  bool holds(std::int64_t value) const { return value >= least && value <= most; }
};
struct NumberRange {
  double least = 0;
  double most = 0;
  bool least_included = true;
  bool holds(double value) const { return (least_included ? value >= least : value > least) && value <= most; }
};

// "takes a whole number from 1 to 4096", "takes a number above 0, up to 1"
std::string describe(const CountRange& range);
std::string describe(const NumberRange& range);

struct RecipeKey {
  std::string_view name;                                          // "optimizer.momentum"
  std::string_view flag;                                          // "--momentum"; empty: a recipe alone can say it
  std::variant<std::monostate, CountRange, NumberRange> range{};  // none: it is no number, or one of a few
};

// InternalError when there is no such key.
const RecipeKey& recipe_key(std::string_view name);
const CountRange& count_range(std::string_view name);
const NumberRange& number_range(std::string_view name);

}  // namespace snug::settings
