// The model as a program before any memory method, for one microbatch size at a time. A search goes from size to size; the
// programs of all sizes together would take more memory than training does beside its arena.
#pragma once

#include <cstdint>
#include <optional>

#include "plan/frontier.h"

namespace snug {

class LoweredModel {
 public:
  // Both must outlive it.
  LoweredModel(const FitRequest& request, const Backend& backend) : request_(request), backend_(backend) {}

  // For a plan that is shown. Valid until another size, or the same size without names, is asked for.
  const Program& named(std::int64_t microbatch);
  // Without names and layers, which no method looks at: such a program is copied much faster.
  const Program& nameless(std::int64_t microbatch);

 private:
  void lower(std::int64_t microbatch);

  const FitRequest& request_;
  const Backend& backend_;
  std::int64_t microbatch_ = 0;
  bool has_names_ = false;
  std::optional<Program> program_;
};

}  // namespace snug
