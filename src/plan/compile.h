// compile() is the map: a model goes in, a plan comes out, one stage after the other.
#pragma once

#include <optional>

#include "ir/kernel.h"
#include "plan/plan.h"

namespace snug {

struct CompileOptions {
  std::int64_t batch = 0;  // examples per step; 0: as many as the model's microbatch
  Methods methods = {};    // what is not given is not done; of equivalent kernels the first within the limit is taken
  ops::UpdateOptions update = {};
  SparseOptions sparse = {};  // how the pattern of sparse weights moves
  CostTable costs = {};       // by which passes choose what to recompute
  PassOptions passes = {};
  Bytes red_zone = Bytes(0);
  OptimalAnswers* optimal_answers = nullptr;  // of a search for one model, which runs the passes many times
};

// `model`: the sections `init` and `forward` of one microbatch, in f32 (frontend/graph_builder.h).
Plan compile(Program model, const Backend& unlimited, const CompileOptions& options = {});

// Its stages, for a search that shares the first between strategies and places only promising programs.
// The model as a program of steps, before any memory method: the same whatever the checkpoint strategy and the workspace limit.
Program lower_model(Program model, const Backend& backend, const CompileOptions& options,
                    std::vector<PassTiming>* timings = nullptr);
// The memory methods.
Program rewrite(Program program, const Backend& unlimited, const CompileOptions& options, std::vector<PassTiming>& timings);
// The complete record for a program that was made by these methods: what was not given is filled in from the program.
Methods complete(Methods methods, const Program& program);
// The lower bound of the device's arena for a program whose passes have run: no placement is smaller.
Bytes arena_bound(const Program& program, Bytes red_zone = Bytes(0));
// Byte offsets for every value.
Plan place(Program program, Bytes red_zone = Bytes(0));

}  // namespace snug
