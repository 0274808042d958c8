// A network's memory by the paper's rules: the given strategy, and what the others would take.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "analysis/paper_accounting.h"

namespace snug::report {

struct PaperReport {
  std::string model;
  std::int64_t parameters = 0;
  std::int64_t batch = 0;
  std::int64_t microbatch = 0;
  std::string precision = "fp32";
  double nonzero = 1.0;
  paper::Accounting asked;
  std::vector<paper::Accounting> strategies;  // in the same setting
  Bytes baseline_bytes;                       // fp32, dense, the whole batch at once, nothing recomputed
};

// `by_class` sums to `total_bytes`; `optimizer` in it is the momentum, and `optimizer_bytes`, as in the paper, the momentum and
// the gradient. FLOPs are of one image.
nlohmann::ordered_json paper_json(const PaperReport& report);

// Within 80 columns, as all of report/text.h.
std::string paper_text(const PaperReport& report);

}  // namespace snug::report
