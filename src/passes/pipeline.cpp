#include <algorithm>
#include <chrono>

#include <fmt/ranges.h>

#include "autodiff/differentiate.h"
#include "base/error.h"
#include "base/nearest.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "passes/accumulate_in_place.h"
#include "passes/checkpoint/checkpoint.h"
#include "passes/compress_activations.h"
#include "passes/drop_gradients.h"
#include "passes/eliminate_dead_nodes.h"
#include "passes/fuse_update.h"
#include "passes/model/add_update.h"
#include "passes/model/choose_layouts.h"
#include "passes/model/choose_recipes.h"
#include "passes/model/fuse.h"
#include "passes/model/narrow.h"
#include "passes/model/sparsify.h"
#include "passes/offload_activations.h"
#include "passes/pass.h"
#include "passes/prepack_weights.h"
#include "passes/select_kernels.h"
#include "passes/share_bytes.h"

namespace snug {

namespace {

constexpr std::string_view kNothingRunsWithout = "nothing runs without it";

}  // namespace

std::vector<Pass> model_passes() {
  return {
      // The model is in f32; parameters, activations and what follows from them are stored in the precision asked for.
      {.name = "narrow",
       .exactness = Exactness::precision,
       .always_because = "it does what the precision says; ask for fp32",
       .run =
           [](Program model, const PassContext& context) {
             const DType precision = context.methods.precision.value_or(DType::f32);
             return precision == DType::f32 ? model : narrow(std::move(model), precision);
           }},
      // One node where two would read and write the same bytes.
      {.name = "fuse", .run = [](Program model, const PassContext& /*context*/) { return fuse(std::move(model)); }},
      // Weights by their nonzeros, if asked for.
      {.name = "sparsify",
       .exactness = Exactness::sparse,
       .always_because = "it does what the share of nonzero weights says; ask for all of them",
       .run =
           [](Program model, const PassContext& context) {
             return sparsify(std::move(model), context.methods.nonzero.value_or(1), context.sparse);
           }},
      // The other weights in the layout that the backend's kernels want.
      {.name = "choose_layouts",
       .run = [](Program model, const PassContext& context) { return choose_layouts(std::move(model), context.backend); }},
      // Which values backward keeps: bits, argmax or the values themselves.
      {.name = "choose_recipes",
       .run = [](Program model, const PassContext& /*context*/) { return choose_recipes(std::move(model)); }},
      // Forward becomes forward and explicit backward, and forward as evaluation has it.
      {.name = "differentiate",
       .always_because = kNothingRunsWithout,
       .run = [](Program model, const PassContext& context) { return differentiate(std::move(model), context.batch); }},
      // What moves the parameters, and what it keeps beside them.
      {.name = "add_update",
       .always_because = kNothingRunsWithout,
       .run =
           [](Program program, const PassContext& context) {
             ops::UpdateOptions update = context.update;
             // Told explicitly or chosen, 32 bits for a momentum go with rules that have none.
             const Attributes known = ops::find_update_rule(update.rule).defaults();
             if (const auto bits = context.methods.momentum_bits; bits && (bits != 32 || known.has("momentum_bits")))
               update.settings.set("momentum_bits", *bits);
             if (const auto bits = context.methods.moment_bits) update.settings.set("moment_bits", *bits);
             return add_update(std::move(program), update);
           }},
  };
}

std::vector<Pass> memory_passes() {
  return {
      // What has no reader because of evaluation's substitutes and frozen parameters.
      {.name = "eliminate_dead_nodes", .run = eliminate_dead_nodes},
      // What the strategy does not keep is recomputed for backward. Before kernels are chosen: a clone is the same node and gets
      // the same kernel.
      {.name = "checkpoint",
       .is_asked_for =
           [](const Methods& methods) { return methods.checkpoint.value_or(CheckpointStrategy{}) != CheckpointStrategy{}; },
       .run = checkpoint},
      // What still waits for backward does so in few bits. After `checkpoint`, so that clones read the unpacked values.
      {.name = "compress_activations",
       .exactness = Exactness::compressed,
       .is_asked_for = [](const Methods& methods) { return methods.compress_bits.has_value(); },
       .run = compress_activations},
      // What still waits for backward does so in host memory: of compressed values, the codes.
      {.name = "offload_activations",
       .is_asked_for = [](const Methods& methods) { return methods.offload.value_or(false); },
       .run = offload_activations},
      // Gradients are added to the momentum at once, and need no accumulators.
      {.name = "drop_gradients",
       .exactness = Exactness::reassociated,
       .is_asked_for = [](const Methods& methods) { return methods.drop_gradients.value_or(false); },
       .run = drop_gradients},
      // Updates move into backward, after the clones that read old weights: an accumulator becomes a value, or a sum of a few.
      {.name = "fuse_update",
       .is_asked_for = [](const Methods& methods) { return methods.fuse_update.value_or(false); },
       .run = fuse_update},
      // Sums of gradients move into the kernels that make the summands, where these can.
      {.name = "accumulate_in_place", .run = accumulate_in_place},
      // Copies of weights that kernels would make at every run become states, made once per update.
      {.name = "prepack_weights",
       .is_asked_for = [](const Methods& methods) { return methods.prepack_weights.value_or(false); },
       .run = prepack_weights},
      // From here on every node has its kernel and its workspace: numerics are frozen.
      {.name = "select_kernels", .always_because = kNothingRunsWithout, .run = select_kernels},
      // Last, because it relies on every lifetime being final.
      {.name = "share_bytes", .run = share_bytes},
  };
}

std::vector<Pass> pipeline() {
  std::vector<Pass> passes = model_passes();
  for (const Pass& pass : memory_passes()) passes.push_back(pass);
  return passes;
}

void check_passes(const std::vector<Pass>& passes, const PassOptions& options, const Methods& methods) {
  const auto find = [&](const std::string& name) {
    const auto found = std::find_if(passes.begin(), passes.end(), [&](const Pass& pass) { return pass.name == name; });
    if (found != passes.end()) return found;
    std::vector<std::string_view> known;
    known.reserve(passes.size());
    for (const Pass& pass : passes) known.emplace_back(pass.name);
    throw_user_error("there is no pass '{}'; the passes are {}{}", name, fmt::join(known, ", "), did_you_mean(name, known));
  };
  for (const std::string& name : options.disabled) {
    const auto pass = find(name);
    if (!pass->always_because.empty()) throw_user_error("pass '{}' cannot be turned off: {}", name, pass->always_because);
    if (pass->is_asked_for != nullptr && pass->is_asked_for(methods))
      throw_user_error("pass '{}' is left out and asked for; leave out one of the two", name);
  }
  if (!options.dump_after.empty()) find(options.dump_after);
}

Program run_passes(Program program, const std::vector<Pass>& passes, const PassContext& context, const PassOptions& options,
                   std::vector<PassTiming>& timings) {
  for (const Pass& pass : passes) {
    const bool is_disabled = std::ranges::find(options.disabled, pass.name) != options.disabled.end();
    if (!is_disabled && (pass.is_asked_for == nullptr || pass.is_asked_for(context.methods))) {
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
