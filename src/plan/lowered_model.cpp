#include "plan/lowered_model.h"

#include <utility>

#include "ir/verify.h"

namespace snug {

const Program& LoweredModel::named(std::int64_t microbatch) {
  if (!program_ || microbatch_ != microbatch || !has_names_) lower(microbatch);
  return *program_;
}

const Program& LoweredModel::nameless(std::int64_t microbatch) {
  if (!program_ || microbatch_ != microbatch) lower(microbatch);
  if (std::exchange(has_names_, false)) {
    for (Section& section : program_->sections) {
      for (Value& value : section.values) value.name = {};
      for (Node& node : section.nodes) node.layer = {};
    }
  }
  return *program_;
}

void LoweredModel::lower(std::int64_t microbatch) {
  program_.reset();  // before the next is made
  CompileOptions options = options_for(request_, request_.given);
  options.passes.dump = {};
  options.passes.verifies = false;  // verified once below, not after every pass
  program_ = lower_model(request_.model(microbatch), backend_, options);
  verify(*program_, "before any memory method");
  microbatch_ = microbatch;
  has_names_ = true;
}

}  // namespace snug
