// The memory report: one HTML page that needs nothing but itself. It draws what its data has:
//
//   the fields of plan_json    figures at its head
//   timeline                   memory over the step, the arena as a map, where the bytes go (timeline.h)
//   methods                    [{"method", "bytes", "seconds"}]: from the plain plan to this one, each adds a method
//   frontier                   [{"bytes", "seconds", "microbatch", "checkpoint", "fused_update", "workspace_limit_bytes"}]: plans
//                              that no other beats in both (report/frontier.h)
//   considered                 the same for every plan that was compared
//   not_explained              why there are no methods and no frontier
//   points, plain, steps       what a sweep trained, as `snug sweep --json` has it
//   training                   training_json
//   run, data                  texts for its head
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace snug::report {

// Text in `report` is escaped.
std::string page(nlohmann::ordered_json report);

// A run's metrics (JSON objects, one per line) as columns over its steps, null where a line lacks a figure:
//   {"columns": {"step": [...], "loss": [...]}, "one_line_in": 1, "damaged_lines": 0}
// A figure that has parts, as in {"step": 1, "nonzeros": {"conv1": 20}}, becomes one column per part: "nonzeros.conv1". Of long
// runs only every `one_line_in`-th line is kept, about `most_lines` in total; all lines with a test are kept, and of those with
// parts an eighth as many.
nlohmann::ordered_json training_json(std::string_view metrics, std::size_t most_lines = 4000);

}  // namespace snug::report
