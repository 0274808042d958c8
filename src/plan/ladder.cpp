#include "plan/ladder.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "analysis/cost.h"

namespace snug {

std::vector<Rung> find_ladder(const std::function<Graph(std::int64_t microbatch)>& model, const CompileOptions& options,
                              const Plan& plan, const Backend& backend) {
  // The passes that save memory in every plan, unless they are turned off: a rung adds each.
  struct Method {
    std::string pass;
    std::string words;
  };
  const std::vector<Method> methods{{"accumulate_in_place", "gradients added up where they are made"},
                                    {"share_bytes", "results in the bytes of what they are made from"}};

  CompileOptions now = options;
  now.passes.dump = {};
  now.passes.dump_after.clear();
  now.checkpoint = {};
  now.workspace_limit = {};
  Backend unlimited = backend;
  unlimited.workspace_limit = {};
  std::int64_t microbatch = plan.program.batch;
  for (const Method& method : methods) now.passes.disabled.push_back(method.pass);

  std::vector<Rung> rungs;
  const auto add = [&](std::string method, const Plan& made) {
    rungs.push_back({.method = std::move(method),
                     .planned_peak_bytes = made.planned_peak_bytes,
                     .seconds = step_seconds(options.costs, made.program)});
  };
  const auto compile_now = [&] { return compile(model(microbatch), unlimited, now); };

  // Every rung but the last is compiled; the last is there already.
  struct Step {
    std::string method;
    std::function<void()> take;
  };
  std::vector<Step> steps;
  for (const Method& method : methods) {
    const std::vector<std::string>& off = options.passes.disabled;
    if (std::find(off.begin(), off.end(), method.pass) != off.end()) continue;
    steps.push_back({method.words, [&now, &method] { std::erase(now.passes.disabled, method.pass); }});
  }
  if (const std::optional<Bytes> limit = options.workspace_limit ? options.workspace_limit : backend.workspace_limit) {
    steps.push_back(
        {fmt::format("kernels' scratch up to {}", format_bytes(*limit)), [&now, limit] { now.workspace_limit = limit; }});
  }
  if (plan.program.microbatch != plan.program.batch) {
    steps.push_back({fmt::format("microbatches of {}", plan.program.microbatch),
                     [&microbatch, &plan] { microbatch = plan.program.microbatch; }});
  }
  if (options.checkpoint != CheckpointStrategy{}) {
    steps.push_back({fmt::format("checkpointing {}", to_string(options.checkpoint)),
                     [&now, &options] { now.checkpoint = options.checkpoint; }});
  }

  if (steps.empty()) {
    add("plain", plan);
    return rungs;
  }
  add("plain: the whole batch, everything kept", compile_now());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    steps[i].take();
    if (i + 1 < steps.size()) {
      add(std::move(steps[i].method), compile_now());
    } else {
      add(std::move(steps[i].method), plan);
    }
  }
  return rungs;
}

}  // namespace snug
