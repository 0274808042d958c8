#include "train/rewiring.h"

#include <algorithm>

#include "base/error.h"
#include "ops/sparse/sparse.h"

namespace snug::train {

bool rewires_after(const RewiringSchedule& schedule, std::uint64_t step) {
  const auto passed = std::lower_bound(schedule.milestones.begin(), schedule.milestones.end(), step);
  const auto period = static_cast<std::size_t>(passed - schedule.milestones.begin());
  if (period >= schedule.every.size()) return false;
  return schedule.every[period] > 0 && step % schedule.every[period] == 0;
}

SparseReport describe_sparse(Session& session) {
  const Program& program = session.plan().program;
  const auto tensors = ops::sparse_tensors(program);
  SNUG_CHECK(!tensors.empty(), "the program of '{}' has no sparse weights", program.name);
  const StateId id = program.find_state("sparse.rows");
  std::vector<std::int32_t> rows(static_cast<std::size_t>(program.state(id).type.elements()));
  session.executor().read(id, std::as_writable_bytes(std::span(rows)));
  SparseReport report;
  for (const ops::NamedSlot& tensor : tensors) {
    const auto first = static_cast<std::size_t>(tensor.slot.first_row);
    report.nonzeros.emplace_back(tensor.name, rows[first + static_cast<std::size_t>(tensor.slot.rows())] - rows[first]);
  }
  const auto number = [&](std::string_view name) {
    double value = 0;
    const StateId state = program.find_state(name);
    if (state.valid()) session.executor().read(state, std::as_writable_bytes(std::span(&value, 1)));
    return value;
  };
  report.threshold = number("sparse.threshold");
  report.pruned = static_cast<std::int64_t>(number("sparse.pruned"));
  return report;
}

}  // namespace snug::train
