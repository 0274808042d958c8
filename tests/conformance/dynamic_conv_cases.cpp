#include <algorithm>

#include <fmt/format.h>

#include "conformance/backend_conformance.h"
#include "ops/ops.h"

namespace snug::conformance {

namespace {

struct Convolution {
  std::int64_t examples, length, heads, head_size, kernel;
};

void add_convolution(std::vector<OpCase>& cases, const Convolution& c) {
  const std::int64_t rows = c.examples * c.length;
  const OperandSpec x{.shape = {rows, c.heads * c.head_size}}, dy{.shape = {rows, c.heads * c.head_size}};
  const OperandSpec shared{.shape = {c.heads, c.kernel}}, of_rows{.shape = {rows, c.heads * c.kernel}};
  const auto taps = static_cast<double>(std::min(c.kernel, c.length)) + 8, size = static_cast<double>(c.head_size) + 8;
  for (const std::int64_t causal : {0, 1}) {
    if (causal == 0 && c.kernel % 2 == 0) continue;
    const std::string name = fmt::format("{}_{}x{}x{}x{}_by_{}", causal == 1 ? "causal" : "full", c.examples, c.length, c.heads,
                                         c.head_size, c.kernel);
    const Attributes attributes{{"heads", c.heads}, {"kernel", c.kernel}, {"causal", causal}, {"rows_per_example", c.length}};
    cases.push_back({"lightweight_conv_" + name, &ops::lightweight_conv, {x, shared}, attributes, taps});
    cases.push_back({"lightweight_conv_grad_input_" + name, &ops::lightweight_conv_grad_input, {dy, shared}, attributes, taps});
    cases.push_back({"lightweight_conv_grad_weight_" + name,
                     &ops::lightweight_conv_grad_weight,
                     {dy, x},
                     attributes,
                     static_cast<double>(rows * c.head_size) + 64});
    cases.push_back({"dynamic_conv_" + name, &ops::dynamic_conv, {x, of_rows}, attributes, taps});
    cases.push_back({"dynamic_conv_grad_input_" + name, &ops::dynamic_conv_grad_input, {dy, of_rows}, attributes, taps});
    cases.push_back({"dynamic_conv_grad_weight_" + name, &ops::dynamic_conv_grad_weight, {dy, x}, attributes, size});
  }
}

}  // namespace

std::vector<OpCase> dynamic_conv_cases() {
  std::vector<OpCase> cases;
  add_convolution(cases, {.examples = 3, .length = 5, .heads = 2, .head_size = 3, .kernel = 3});
  add_convolution(cases, {.examples = 1, .length = 1, .heads = 1, .head_size = 1, .kernel = 1});
  add_convolution(cases, {.examples = 4, .length = 1, .heads = 2, .head_size = 8, .kernel = 3});
  // Kernels longer than the examples.
  add_convolution(cases, {.examples = 3, .length = 4, .heads = 4, .head_size = 8, .kernel = 31});
  add_convolution(cases, {.examples = 2, .length = 3, .heads = 1, .head_size = 37, .kernel = 7});
  add_convolution(cases, {.examples = 2, .length = 33, .heads = 16, .head_size = 4, .kernel = 4});
  add_convolution(cases, {.examples = 1, .length = 70, .heads = 16, .head_size = 16, .kernel = 15});
  add_convolution(cases, {.examples = 2, .length = 61, .heads = 3, .head_size = 24, .kernel = 31});
  add_convolution(cases, {.examples = 2, .length = 19, .heads = 13, .head_size = 1, .kernel = 5});
  add_convolution(cases, {.examples = 1, .length = 40, .heads = 1, .head_size = 320, .kernel = 7});
  // Several chunks of rows, whose ends are not those of the examples.
  add_convolution(cases, {.examples = 5, .length = 103, .heads = 2, .head_size = 40, .kernel = 9});
  return cases;
}

}  // namespace snug::conformance
