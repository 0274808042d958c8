#include "plan/program_in_hand.h"

#include <utility>

#include "ir/verify.h"

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
  CompileOptions options = options_for(request_, request_.given);
  options.passes.dump = {};
  options.passes.verifies = false;  // once at the end is enough for so many programs
  program_ = lower_model(request_.model(microbatch), backend_, options);
  verify(*program_, "before any memory method");
  microbatch_ = microbatch;
  has_names_ = true;
}

}  // namespace snug
