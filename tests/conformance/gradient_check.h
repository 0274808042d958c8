// Compares the gradients that a compiled program leaves in its accumulators with central differences of its loss, in double.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "frontend/graph_builder.h"
#include "ir/kernel.h"
#include "ir/program.h"

namespace snug::conformance {

// One small model whose parameters are the operands under test.
struct GradientCase {
  std::string name;
  std::function<void(frontend::GraphBuilder&)> build;
  std::int64_t batch = 3;
  std::int64_t valid = 0;                 // examples that are not padding; 0: all
  double step = 1e-6;                     // of the differences; smaller than the distance to any kink
  Program (*rewrite)(Program) = nullptr;  // what the model becomes before it is differentiated
  // Inputs of whole numbers, by name; others are 0, 1, 2, 3, 0, ...
  std::map<std::string, std::vector<std::int32_t>> indices = {};
};

Program build_graph(const GradientCase& test);

// An operand that the loss is differentiated by.
ValueId operand(frontend::GraphBuilder& builder, const std::string& name, const Shape& shape);

// Ends a model: the sum of x's elements of valid examples, each with a weight of its own.
void weighted_sum_loss(frontend::GraphBuilder& builder, ValueId x);

// The reference backend and the kernels of the loss above.
Backend checking_backend();

struct GradientReport {
  double worst_error = 0;  // largest |analytic - numeric| / (1 + |numeric|) over all elements of all parameters
  std::string worst_place;
  std::int64_t compared = 0;
};

// Runs the case with the given recipe at every forward node that has it (others take their first).
GradientReport check_gradients(const GradientCase& test, const OpDef& op, int recipe);

// Loss and all gradients, as bytes, with some passes turned off; `rewrite` may change the graph before it is differentiated.
std::vector<std::byte> gradient_bytes(const GradientCase& test, const std::vector<std::string>& disabled_passes,
                                      Program (*rewrite)(Program) = nullptr);

// The cases, one list a file.
std::vector<GradientCase> layer_cases();
std::vector<GradientCase> normalization_cases();
std::vector<GradientCase> sequence_gradient_cases();
std::vector<GradientCase> all_cases();

}  // namespace snug::conformance
