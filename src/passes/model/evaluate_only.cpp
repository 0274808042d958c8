#include "passes/model/evaluate_only.h"

#include <algorithm>

#include "base/error.h"
#include "ir/op.h"
#include "passes/model/keep_scores.h"

namespace snug {

Program evaluate_only(Program program) {
  std::erase_if(program.sections, [](const Section& section) { return section.kind != SectionKind::eval; });
  Section* eval = program.find_section(SectionKind::eval);
  SNUG_CHECK(eval != nullptr, "'{}' has no evaluation", program.name);
  const NodeId loss = find_loss(*eval);
  if (loss.valid() && eval->nodes[loss.index()].op->loss->has_scores()) keep_scores(program, *eval, loss);
  // Weights stay, read or not: a file that has them is read whole.
  remove_unused_states(program, {Role::parameter, Role::statistic, Role::input});
  return program;
}

}  // namespace snug
