#include "api/costs.h"

#include <algorithm>
#include <set>
#include <system_error>

#include "base/error.h"
#include "base/process_memory.h"
#include "io/cost_file.h"
#include "train/measure_costs.h"
#include "train/random_batches.h"

namespace snug {

namespace {

constexpr std::string_view kNone = "none";

// The batch, its half, its quarter, ... and the smallest that a plan may have: between them times are interpolated.
std::vector<std::int64_t> sizes_to_measure(const FitRequest& request) {
  if (request.given.microbatch) return {*request.given.microbatch};
  const std::int64_t batch = request.options.batch;
  const std::int64_t least = depends_on_microbatch(request) ? std::clamp<std::int64_t>(request.min_microbatch, 1, batch) : 1;
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = batch; size > least; size = (size + 1) / 2) sizes.push_back(size);
  sizes.push_back(least);
  return sizes;
}

// Whether every node of the plan's step has been measured with its own kernel, as itself or for any number of
// examples.
enum class Size : std::uint8_t { exact, any };
bool covers(const std::vector<NodeCost>& nodes, const Plan& plan, Size size) {
  std::set<std::pair<std::string_view, std::string_view>> known;
  for (const NodeCost& node : nodes) known.emplace(size == Size::exact ? node.key : node.family, node.kernel);
  for (const SectionKind kind : {SectionKind::micro, SectionKind::update}) {
    const Section* section = plan.program.find_section(kind);
    for (const Node& node : section->nodes) {
      const std::string name = size == Size::exact ? cost_key(*section, node) : cost_family(*section, node);
      if (!known.contains({name, node.kernel})) return false;
    }
  }
  return true;
}

void measure_plan(Plan plan, const Backend& backend, Costs& costs) {
  const train::RandomBatches batches(plan.program, plan.program.microbatch, 1, 1);
  train::Session session(std::move(plan), backend, 1);
  session.set_learning_rate(1e-3);
  if (session.clips()) session.set_clip_norm(1);
  io::merge_costs(costs.nodes, train::measure_costs(session, batches[0]));
  io::write_cost_file(costs.file, io::cost_key_of(backend), costs.nodes);
}

void measure_if_possible(Plan plan, const Backend& backend, Costs& costs, const std::function<void(const std::string&)>& say) {
  const std::string name = fmt::format("{} in microbatches of {} ({})", plan.program.name, plan.program.microbatch,
                                       format_bytes(plan.planned_peak_bytes));
  if (!has_room(plan, backend)) return say(fmt::format("not measured: {}, more than this machine has", name));
  say(fmt::format("measuring {}", name));
  try {
    measure_plan(std::move(plan), backend, costs);
  } catch (const DoesNotFit& error) {
    say(fmt::format("not measured: {}: {}", name, error.what()));
  }
}

}  // namespace

Costs find_costs(const std::optional<std::string>& choice, const Backend& backend) {
  if (choice == kNone) return {.speeds = backend.product_speeds};
  const io::CostKey key = io::cost_key_of(backend);
  Costs costs{.speeds = backend.product_speeds};
  if (choice) {
    costs.file = *choice;
  } else if (const auto own = io::default_cost_file(key)) {
    costs.file = *own;
  }
  std::error_code ignored;  // a home that cannot be read has no costs, either
  if (!choice && !std::filesystem::exists(costs.file, ignored)) return costs;
  try {
    costs.nodes = io::read_cost_file(costs.file, key);
  } catch (const UserError& error) {
    if (choice) throw;
    costs.note = fmt::format("{}; until then a fixed table is used", error.what());
  }
  return costs;
}

Costs find_costs_to_measure(const std::optional<std::string>& choice, const Backend& backend) {
  if (choice == kNone) throw UserError("--costs none leaves nowhere to keep what is measured; leave it out or name a file");
  if (choice && !std::filesystem::exists(*choice)) return {.file = *choice, .speeds = backend.product_speeds};
  Costs costs = find_costs(choice, backend);
  if (costs.file.empty()) throw UserError("there is no HOME to keep measured costs in; name a file with --costs");
  if (!costs.note.empty()) {
    const std::filesystem::path aside = costs.file.string() + ".old";
    std::error_code error;
    std::filesystem::rename(costs.file, aside, error);
    if (error) throw_user_error("'{}' cannot be set aside: {}", costs.file.string(), error.message());
    costs.note = fmt::format("the costs in '{}' are damaged or of another machine: set aside as '{}' and measured again",
                             costs.file.string(), aside.filename().string());
  }
  return costs;
}

void measure_costs(const FitRequest& request, const Backend& backend, Costs& costs,
                   const std::function<void(const std::string&)>& say) {
  for (const std::int64_t size : sizes_to_measure(request)) {
    FitRequest whole = request;
    whole.options.batch = size;
    whole.options.passes.dump = {};
    whole.given.microbatch = size;
    whole.given.checkpoint.reset();
    Plan plan = compile_point(whole, plain_point(whole), backend);
    if (!covers(costs.nodes, plan, Size::exact)) measure_if_possible(std::move(plan), backend, costs, say);
  }
  // Plans for small budgets run kernels with less workspace, which no plain plan has. What is measured of them may bring others
  // onto the frontier.
  constexpr int kMostRounds = 3;
  for (int round = 0; round < kMostRounds; ++round) {
    const std::size_t known = costs.nodes.size();
    FitRequest measured = request;
    measured.options.passes.dump = {};
    measured.options.costs = costs.table();
    for (const FrontierPoint& point : find_frontier(measured, backend).points) {
      if (point.methods.workspace_limit == request.given.workspace_limit) continue;
      Plan plan = compile_point(measured, point, backend);
      if (!covers(costs.nodes, plan, Size::any)) measure_if_possible(std::move(plan), backend, costs, say);
    }
    if (costs.nodes.size() == known) return;
  }
}

bool has_room(const Plan& plan, const Backend& backend) {
  const Bytes on_device = backend.name == "cuda" ? Bytes(0) : plan.planned_peak_bytes;
  return machine_has_room(on_device + plan.host.planned_peak_bytes);
}

bool can_predict(const Costs& costs, const Backend& backend) { return !costs.nodes.empty() || backend.name != "cuda"; }

std::optional<double> predict_step_seconds(const Costs& costs, const Plan& plan, const Backend& backend) {
  if (!can_predict(costs, backend)) return std::nullopt;
  return step_seconds(costs.table(), plan.program);
}

std::string describe_source(const Costs& costs) { return costs.nodes.empty() ? "fixed table" : "measured on this machine"; }

}  // namespace snug
