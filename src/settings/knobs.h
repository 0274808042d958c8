// The table of knobs: one row for everything that a run can be told. Recipes, flags, help, checks, refusals and what may change
// when a run goes on are made from it, so that they cannot disagree. A new knob is a field of Recipe and a row here.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "data/dataset.h"
#include "passes/pass.h"
#include "settings/recipe.h"

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
using Choices = std::span<const std::string_view>;  // of texts or of whole numbers, as they are written

// "takes a whole number from 1 to 4096", "takes a number above 0, up to 1"
std::string describe(const CountRange& range);
std::string describe(const NumberRange& range);

// Where a knob's value lies in a recipe. An optional that is empty was not told.
using Slot =
    std::variant<std::string*, std::optional<std::string>*, std::vector<std::string>*, std::int64_t*,
                 std::optional<std::int64_t>*, std::uint64_t*, double*, std::optional<double>*, std::vector<double>*, bool*,
                 std::optional<bool>*, std::optional<Bytes>*, std::optional<DType>*, std::optional<CheckpointStrategy>*>;

// Under which heading help lists a knob.
enum class Topic : std::uint8_t { model, memory, optimizer, schedule, length, weights };
inline constexpr std::array kTopics{Topic::model,    Topic::memory, Topic::optimizer,
                                    Topic::schedule, Topic::length, Topic::weights};
std::string_view heading_of(Topic topic);

// Where a knob's flag may be given.
enum class Offered : std::uint8_t {
  nowhere = 0,
  plan = 1,
  profile = 2,
  sweep = 4,
  train = 8,
  paper = 16,  // profile --accounting paper, whose rules know few of a plan's methods
  program = plan | profile | sweep | train,
};
constexpr Offered operator|(Offered a, Offered b) {
  return static_cast<Offered>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr bool includes(Offered where, Offered one) { return (static_cast<unsigned>(where) & static_cast<unsigned>(one)) != 0; }

// Who has a say about a knob beside the recipe and the flags.
enum class PlanSays : std::uint8_t {
  nothing,
  how,  // the knob tells how a plan is made: one that is read from a file was made in its own way
  form  // it is about the model that is planned: a plan on file has its own, and the same may be said again
};

struct Knob {
  std::string_view key;   // "optimizer.momentum"
  std::string_view flag;  // "--momentum"; empty: a recipe alone can say it
  Slot (*slot)(Recipe&);
  std::string_view argument;  // what help calls the flag's value; empty: the flag takes none
  std::variant<std::monostate, CountRange, NumberRange, Choices> values{};
  Choices suggested{};  // some of the values where not all can be listed
  std::string_view help;
  std::string_view otherwise;  // what holds when nothing is told; empty: the value that a recipe begins with
  Topic topic = Topic::model;
  Offered offered = Offered::program;
  std::optional<Exactness> exactness;  // the rung of the ladder that a plan may take for it, where it takes one
  bool is_chosen = false;              // a plan for a budget chooses it where nobody told it
  PlanSays plan_says = PlanSays::nothing;
  bool may_change = false;                         // when a run goes on
  bool cpu_alone = false;                          // no other device does it so far
  std::string_view optimizer = {};                 // whose setting it is; empty: of all, or of none
  std::optional<data::Kind> reads = std::nullopt;  // what the models read that it is for; nothing: of all
  bool is_quiet = false;  // a printed recipe leaves it out where it has the value that a recipe begins with
  bool repeats = false;   // the flag is given once for each text; otherwise a list has commas
};

std::span<const Knob> knobs();
bool has_knob(std::string_view key);
// InternalError when there is no such key.
const Knob& knob(std::string_view key);
// Its flag where flags are spoken of and it has one, otherwise its key.
std::string_view name_of(const Knob& knob, SaidBy said_by);

// "optimizer" and "momentum" of "optimizer.momentum"; the file's own table has no name.
struct KeyParts {
  std::string table, name;
};
KeyParts parts_of(const Knob& knob);

// "examples per step (default: 100)"
std::string help_of(const Knob& knob);

// Values that the flag takes, all or some; none where they are numbers or texts of any kind.
std::vector<std::string_view> example_values(const Knob& knob);
// Whether the flag takes several values with commas between them.
bool takes_list(const Knob& knob);

// What is wrong with a value, as the end of a sentence that begins with the knob's name; nothing when it is as it was before
// anything was told.
std::optional<std::string> objection_to(const Knob& knob, const Recipe& recipe);

// The knob's value as its flag takes it; UserError naming the flag, or the key.
void take(const Knob& knob, std::span<const std::string> texts, Recipe& recipe, SaidBy said_by = SaidBy::flags);

// As it was before anything was told.
void reset(const Knob& knob, Recipe& recipe);

bool is_same(const Knob& knob, const Recipe& one, const Recipe& other);
// Whether something was told, be it the same that holds anyway.
bool is_told(const Knob& knob, const Recipe& recipe);
// As a flag takes it, and as TOML; only of what is_told.
std::string show_value(const Knob& knob, const Recipe& recipe);
std::string print_value(const Knob& knob, const Recipe& recipe);

// The whole number that a flag was given; UserError naming the flag when it is none or out of range.
std::int64_t parse_count(std::string_view flag, std::string_view text, const CountRange& range);
// ... any number.
double parse_number(std::string_view flag, std::string_view text, const NumberRange& range);
// The size that a flag was given, as in 6.7MB.
Bytes parse_size(std::string_view flag, std::string_view text);

}  // namespace snug::settings
