// Memory against throughput, measured.

#include "api/sweep.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/recipe_flags.h"
#include "io/file_io.h"
#include "report/page.h"
#include "settings/knobs.h"

namespace snug::cli {

namespace {

// "6MB..24MB"
std::pair<Bytes, Bytes> parse_range(const std::string& text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos)
    throw_user_error("--budgets takes the smallest and the largest, as in 6.7MB..24MB, not '{}'", text);
  const Bytes smallest = settings::parse_size("--budgets", text.substr(0, dots));
  const Bytes largest = settings::parse_size("--budgets", text.substr(dots + 2));
  if (smallest > largest)
    throw_user_error("--budgets {} begins with the larger one; write {}..{}", text, text.substr(dots + 2), text.substr(0, dots));
  return {smallest, largest};
}

}  // namespace

void run_sweep(const Flags& flags) {
  examples_of(flags);  // the model is there
  SweepRequest request{.recipe = recipe_of(flags), .random_data = !flags.has("data"), .costs = flags.costs};
  if (flags.budgets) request.between = parse_range(*flags.budgets);
  if (flags.points)
    request.points = static_cast<std::size_t>(settings::parse_count("--points", *flags.points, {.least = 1, .most = 1000}));
  if (flags.timed_steps)
    request.steps = static_cast<int>(settings::parse_count("--steps", *flags.timed_steps, {.least = 1, .most = 1'000'000}));
  request.say = note;
  if (flags.html) io::require_writable(*flags.html);  // what takes minutes to measure should not be lost to a bad path
  const Sweep sweep = snug::run_sweep(request);
  const nlohmann::ordered_json json = sweep_json(sweep);
  if (flags.json) {
    write_json(json);
  } else {
    write_out(sweep_text(sweep));
  }
  if (!flags.html) return;
  io::write_text_file(*flags.html, report::page(json));
  if (!flags.json) write_out(fmt::format("\n{}: the same as a page; open it in a browser\n", *flags.html));
}

}  // namespace snug::cli
