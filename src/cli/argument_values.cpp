#include "cli/argument_values.h"

#include <algorithm>
#include <string_view>

#include <CLI/CLI.hpp>

#include "frontend/zoo.h"
#include "passes/pass.h"
#include "settings/knobs.h"

namespace snug::cli {

namespace {

template <typename Names>
void append(std::vector<std::string>& words, const Names& names) {
  words.insert(words.end(), std::begin(names), std::end(names));
}

// "FILE", "FOLDER", "bash": one of those between bars.
void add_kind(ArgumentValues& values, std::string_view kind) {
  if (kind == "FILE" || kind == "FILES") values.paths = Paths::files;
  if (kind == "FOLDER" || kind == "RUN" || kind == "DATA") values.paths = Paths::folders;
  if (kind == "DATA") append(values.words, example_values(settings::knob("data")));
  if (kind == "PASS") {
    for (const Pass& pass : pipeline()) values.words.emplace_back(pass.name);
  }
  if (kind == "MODEL") {
    values.paths = Paths::recipes;
    for (const frontend::ZooEntry& entry : frontend::zoo_entries()) values.words.emplace_back(entry.example);
  }
  const bool is_word = std::ranges::all_of(kind, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
  if (is_word && !kind.empty()) values.words.emplace_back(kind);
}

}  // namespace

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

ArgumentValues values_of(const CLI::Option& option) {
  ArgumentValues values;
  const std::string type = option.get_type_name();
  const std::string kinds = type.empty() ? option.get_name(option.get_positional()) : type;
  for (std::string_view rest = kinds; !rest.empty();) {
    const std::size_t bar = std::min(rest.find('|'), rest.size());
    add_kind(values, rest.substr(0, bar));
    rest.remove_prefix(std::min(bar + 1, rest.size()));
  }
  const auto knobs = settings::knobs();
  const auto knob = std::ranges::find_if(knobs, [&](const settings::Knob& one) {
    return option.get_name() == one.flag && type == one.argument;  // a command may have a flag of its own by the same name
  });
  if (knob != knobs.end() && values.words.empty()) {
    append(values.words, example_values(*knob));
    values.is_list = takes_list(*knob) && !values.words.empty();
  }
  return values;
}

}  // namespace snug::cli
