#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "passes/accumulate_in_place.h"
#include "passes/checkpoint.h"
#include "passes/compress_activations.h"
#include "passes/drop_gradients.h"
#include "passes/eliminate_dead_nodes.h"
#include "passes/fuse_update.h"
#include "passes/offload_activations.h"
#include "passes/pass.h"
#include "passes/prepack_weights.h"
#include "passes/select_kernels.h"
#include "passes/share_bytes.h"

namespace snug {

std::vector<Pass> pipeline() {
  return {
      // What evaluation's substitutes and frozen parameters left without a reader.
      {.name = "eliminate_dead_nodes", .run = eliminate_dead_nodes},
      // What the strategy does not keep is made again for backward. Before kernels are chosen: a clone is the same node, and is
      // given the same.
      {.name = "checkpoint", .run = checkpoint},
      // What still waits for backward does so in few bits. Behind the clones, which then read what comes back from them.
      {.name = "compress_activations", .exactness = Exactness::compressed, .on_request = true, .run = compress_activations},
      // What still waits for backward does so in host memory: of compressed values, the codes.
      {.name = "offload_activations", .on_request = true, .run = offload_activations},
      // Gradients are added to the momentum at once, and need no accumulators.
      {.name = "drop_gradients", .exactness = Exactness::reassociated, .on_request = true, .run = drop_gradients},
      // Updates move into backward, behind the clones that read old weights: what was an accumulator is a value, or a sum of few.
      {.name = "fuse_update", .on_request = true, .run = fuse_update},
      // Sums of gradients move into the kernels that make the summands, where these can.
      {.name = "accumulate_in_place", .run = accumulate_in_place},
      // Copies of weights that kernels would make at every run become states, made once an update.
      {.name = "prepack_weights", .on_request = true, .run = prepack_weights},
      // From here on every node has its kernel and its workspace: numerics are frozen.
      {.name = "select_kernels", .required = true, .run = select_kernels},
      // Last, because it relies on every lifetime being final.
      {.name = "share_bytes", .run = share_bytes},
  };
}

namespace {

void check_pass_names(const std::vector<Pass>& passes, const PassOptions& options) {
  const auto find = [&](const std::string& name) {
    const auto found = std::find_if(passes.begin(), passes.end(), [&](const Pass& pass) { return pass.name == name; });
    if (found != passes.end()) return found;
    std::string known;
    for (const Pass& pass : passes) known += fmt::format("{}{}", known.empty() ? "" : ", ", pass.name);
    throw_user_error("there is no pass '{}'; the passes are {}", name, known);
  };
  for (const std::string& name : options.disabled) {
    if (find(name)->required) throw_user_error("pass '{}' cannot be turned off: nothing runs without it", name);
  }
  for (const std::string& name : options.enabled) {
    if (!find(name)->on_request) throw_user_error("pass '{}' runs anyway; only those that cost something are asked for", name);
  }
  if (!options.dump_after.empty()) find(options.dump_after);
}

}  // namespace

Program run_passes(Program program, const std::vector<Pass>& passes, const PassContext& context, const PassOptions& options,
                   std::vector<PassTiming>& timings) {
  check_pass_names(passes, options);
  for (const Pass& pass : passes) {
    const auto named_in = [&](const std::vector<std::string>& names) {
      return std::find(names.begin(), names.end(), pass.name) != names.end();
    };
    if (!named_in(options.disabled) && (!pass.on_request || named_in(options.enabled))) {
      const auto start = std::chrono::steady_clock::now();
      program = pass.run(std::move(program), context);
      timings.push_back({pass.name, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()});
      if (options.verifies) verify(program, fmt::format("after pass {}", pass.name));
    }
    if (options.dump_after == pass.name && options.dump) options.dump(pass.name, print(program));
  }
  return program;
}

}  // namespace snug
