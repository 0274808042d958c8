// Where the bytes go, before anything runs.
#pragma once

#include <cstdint>
#include <string>

namespace snug {

struct MemorySummary {
  std::int64_t planned_peak_bytes = 0;  // the arena's size
  std::int64_t bound_bytes = 0;         // a lower bound: what the lifetimes of values demand of any placement
  std::int64_t plain_peak_bytes =
      0;                        // what plain training, the whole batch at once, would take; 0 when a microbatch was asked for
  std::int64_t host_bytes = 0;  // of the arena in host memory, where values are offloaded
  std::int64_t microbatch = 0;  // examples in memory at a time
  int compress_bits = 0;        // per element of activations stored until backward; 0: as they are
  double nonzero = 1;           // share of the convolutions' weights that is stored
  std::string checkpoint;       // what backward recomputes; "none": nothing
  std::string precision;        // what values are stored in
  struct {
    std::int64_t model = 0, gradient = 0, optimizer = 0, activation = 0, workspace = 0, input = 0;
  } by_class;  // at the fullest moment
};

}  // namespace snug
