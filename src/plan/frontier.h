// The frontier: of all plans that the solver tries, those that no other beats in both bytes and time. It does not depend on the
// budget, so a smaller budget never gets a larger plan, and the smallest possible budget is known to the byte.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "ir/kernel.h"
#include "plan/allowance.h"
#include "plan/compile.h"

namespace snug {

struct FitRequest {
  std::function<Program(std::int64_t microbatch)> model;  // see compile()
  CompileOptions options;                                 // with `batch` set, without `methods`: these are chosen
  Methods given = {};                                     // obeyed; the solver may choose what is missing
  std::optional<Bytes> budget = {};                       // nothing: as much as the whole batch takes
  // Networks with batch norm are not split below this: their statistics are of a microbatch. Ignored where a statistics group is
  // given, for which the model was then built: a microbatch is the batch or a multiple of the group, and how the batch is split
  // no longer changes the statistics.
  std::int64_t min_microbatch = 10;
  Allowance allowed = {};  // what the solver may choose; a given flag is obeyed whatever it changes
  // What may be chosen instead of fp32 where Exactness::precision is allowed: the 16-bit type that suits the device.
  std::optional<DType> narrow_precision = {};
  // How 16-bit updates are rounded; nothing: to nearest in fp16, else stochastically. The 8 bits of bf16's mantissa would lose
  // small updates.
  std::optional<bool> stochastic_rounding = {};
};

// The options that compile the request's model by these methods. The update follows from the precision: in fp16 it finds
// overflows, for dynamic loss scaling.
CompileOptions options_for(const FitRequest& request, const Methods& methods);

// The width in which a search keeps activations where it may (rung `compressed`); other widths must be given.
inline constexpr std::int64_t kSolverCompressBits = 4;
// Whether the backend has kernels that pack, and the request does not leave the pass out.
bool can_compress(const FitRequest& request, const Backend& backend);

// The shares of the convolutions' weights that a search keeps where it may (rung `sparse`), in the order in which they are tried;
// other shares must be given.
inline constexpr std::array<double, 4> kSolverNonzero{0.5, 0.3, 0.2, 0.1};
// Whether the model is dense, has weights that could be sparse, and the backend has kernels for them.
bool can_be_sparse(const FitRequest& request, const Backend& backend);

// Whether a pass is turned off.
bool leaves_out(const FitRequest& request, std::string_view pass);

// UserError about a batch, microbatch or statistics group that is not possible.
void check_request(const FitRequest& request);

// A plan's description, from which compile_point() reproduces the plan byte for byte.
struct FrontierPoint {
  Methods methods;           // all of them
  Bytes planned_peak_bytes;  // of the arena, as placed
  double seconds = 0;        // of a step, by FitRequest.options.costs
};

struct Frontier {
  // Bytes ascending, seconds strictly descending, except where sparser plans begin: these are listed only below all denser ones,
  // however fast they are. So the plan for a budget is the last that fits.
  std::vector<FrontierPoint> points;
  std::vector<FrontierPoint> considered;  // every program that was compared; its bytes are the lower bound
};

// Deterministic, and limited by counts, never by the clock. Never empty. Sparser plans are tried only until one fits the
// request's budget. UserError about a request that contradicts itself.
Frontier find_frontier(const FitRequest& request, const Backend& backend);

// The last point of the frontier that fits the budget, or the smallest when none does, with its plan. The same as looking it up
// in find_frontier(), but plans that are smaller and slower than the answer are not placed.
struct PlacedPoint {
  FrontierPoint point;
  Plan plan;
};
PlacedPoint find_fastest_within(const FitRequest& request, const Backend& backend);

// What is given, and otherwise plain training, without its bytes and seconds.
FrontierPoint plain_point(const FitRequest& request);

Plan compile_point(const FitRequest& request, const FrontierPoint& point, const Backend& backend);

// Whether it fills a limit that was not given: the budget decides.
bool leaves_limit_open(const CheckpointStrategy& strategy);

// Whether statistics are taken over the microbatch, so that splitting changes more than the order of sums.
bool depends_on_microbatch(const FitRequest& request);

}  // namespace snug
