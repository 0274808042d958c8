#include "plan/program_in_hand.h"

#include <utility>

namespace snug {

const Program& ProgramInHand::named(std::int64_t microbatch) {
  if (!program_ || microbatch_ != microbatch || !has_names_) lower(microbatch);
  return *program_;
}

const Program& ProgramInHand::nameless(std::int64_t microbatch) {
  if (!program_ || microbatch_ != microbatch) lower(microbatch);
  if (std::exchange(has_names_, false)) {
    for (Section& section : program_->sections) {
      for (Value& value : section.values) value.name = {};
      for (Node& node : section.nodes) node.layer = {};
    }
  }
  return *program_;
}

void ProgramInHand::lower(std::int64_t microbatch) {
  program_.reset();  // before the next is there
  CompileOptions options = request_.options;
  options.passes.dump = {};
  program_ = lower_model(request_.model(microbatch), backend_, options);
  microbatch_ = microbatch;
  has_names_ = true;
}

}  // namespace snug
