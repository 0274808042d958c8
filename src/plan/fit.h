// Microbatches as small as a budget asks for: the largest whose plan fits it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "ir/graph.h"
#include "ir/kernel.h"
#include "plan/compile.h"

namespace snug {

struct FitRequest {
  std::function<Graph(std::int64_t microbatch)> model;
  CompileOptions options;                       // with `batch` set
  std::optional<Bytes> budget = {};             // nothing: whatever the whole batch takes
  std::optional<std::int64_t> microbatch = {};  // when given, obeyed
  // Networks with batch norm are not split below this: their statistics are of a microbatch.
  std::int64_t min_microbatch = 10;
  // What the model was built to take its statistics over; 0: the microbatch. Above 0 a microbatch is the batch or a multiple of
  // this, and `min_microbatch` has no say: how the batch is split no longer changes the statistics.
  std::int64_t statistics_group = 0;
};

struct Fit {
  Plan plan;
  // Of the whole batch at once, with everything kept that backward reads; nothing when a smaller microbatch was asked for.
  std::optional<Bytes> plain_peak_bytes;
};

// Deterministic: it depends on the request alone. DoesNotFit naming the smallest budget that would do and what fills it.
Fit fit(const FitRequest& request, const Backend& backend);

}  // namespace snug
