#include <fmt/format.h>

#include "conformance/backend_conformance.h"
#include "ir/example_rows.h"
#include "ops/ops.h"

namespace snug::conformance {

namespace {

using Kind = OperandSpec::Kind;

OperandSpec real(Shape shape) { return {.shape = shape}; }
OperandSpec statistic(Shape shape) { return {.kind = Kind::statistic, .shape = shape}; }
OperandSpec positive(Shape shape) { return {.kind = Kind::statistic, .shape = shape, .low = 0.1, .high = 1.0}; }

struct BatchNorm {
  std::string name;
  Shape shape;
  std::int64_t group_size;
  std::uint32_t valid;  // examples
  std::int64_t rows_per_example = 1;
};

void add_batch_norm(std::vector<OpCase>& cases, const BatchNorm& b) {
  const std::int64_t channels = b.shape[1];
  const std::int64_t groups = (b.shape[0] + b.group_size - 1) / b.group_size;
  const std::int64_t pixels = b.shape.elements() / (b.shape[0] * channels);
  const double elements = static_cast<double>(b.group_size * pixels);
  const OperandSpec scalars{.kind = Kind::scalars, .scalars = {.valid_examples = b.valid, .batch_examples = b.valid + 3}};
  const OperandSpec x = real(b.shape), dy = real(b.shape), weight = statistic({channels}), bias = statistic({channels});
  const OperandSpec mean = statistic({groups, channels}), variance = positive({groups, channels});
  const OperandSpec fixed_mean = statistic({channels}), fixed_variance = positive({channels});
  const OperandSpec sums{.kind = Kind::statistic, .shape = {groups, channels}, .low = -elements, .high = elements};
  Attributes grouped{{"group_size", b.group_size}, {"epsilon", 1e-5}};
  set_rows_per_example(grouped, b.rows_per_example);
  const auto add = [&](const std::string& what, const OpDef& op, std::vector<OperandSpec> operands, const Attributes& attributes,
                       double terms) {
    cases.push_back({what + "_" + b.name, &op, std::move(operands), attributes, terms});
  };

  Attributes statistics{{"group_size", b.group_size}};
  set_rows_per_example(statistics, b.rows_per_example);
  add("batch_norm_statistics", ops::batch_norm_statistics, {x, scalars}, statistics, 64);
  OperandSpec shifted = x;
  shifted.low = 99;
  shifted.high = 101;
  // Its mean is rounded to the nearest of numbers near 100; its variance must keep its digits all the same.
  add("batch_norm_statistics_far_from_zero", ops::batch_norm_statistics, {shifted, scalars}, statistics, 64);
  add("batch_norm_apply", ops::batch_norm_apply, {x, mean, variance, weight, bias, scalars}, grouped, 64);
  add("batch_norm_apply_fixed", ops::batch_norm_apply, {x, fixed_mean, fixed_variance, weight, bias, scalars}, grouped, 64);
  Attributes running{{"group_size", b.group_size}, {"momentum", 0.1}, {"batch", b.shape[0]}, {"pixels", pixels}};
  set_rows_per_example(running, b.rows_per_example);
  add("batch_norm_running", ops::batch_norm_running, {mean, variance, fixed_mean, fixed_variance, scalars}, running, 16);
  add("batch_norm_grad_reduce", ops::batch_norm_grad_reduce, {dy, x, mean, variance}, grouped, 4 * elements + 64);
  add("batch_norm_grad_reduce_fixed", ops::batch_norm_grad_reduce, {dy, x, fixed_mean, fixed_variance}, grouped,
      4 * elements + 64);
  add("batch_norm_grad_input", ops::batch_norm_grad_input, {dy, x, mean, variance, weight, sums, sums, scalars}, grouped, 256);
  add("batch_norm_grad_fixed", ops::batch_norm_grad_fixed, {dy, fixed_variance, weight}, grouped, 64);
}

void add_group_norm(std::vector<OpCase>& cases, const std::string& name, Shape shape, std::int64_t groups) {
  const OperandSpec x = real(shape), dy = real(shape), weight = statistic({shape[1]}), bias = statistic({shape[1]});
  const OperandSpec mean = statistic({shape[0], groups}), variance = positive({shape[0], groups});
  const Attributes attributes{{"groups", groups}, {"epsilon", 1e-5}};
  const auto rows = static_cast<double>(shape[0] * shape[2] * shape[3]);
  cases.push_back({"group_norm_" + name, &ops::group_norm, {x, weight, bias}, attributes, 64});
  cases.push_back(
      {"group_norm_grad_input_" + name, &ops::group_norm_grad_input, {dy, x, mean, variance, weight}, attributes, 256});
  cases.push_back({"group_norm_grad_parameters_" + name,
                   &ops::group_norm_grad_parameters,
                   {dy, x, mean, variance},
                   attributes,
                   4 * rows + 64});
}

}  // namespace

std::vector<OpCase> norm_cases() {
  std::vector<OpCase> cases;
  add_batch_norm(cases, {.name = "groups", .shape = {5, 35, 3, 2}, .group_size = 2, .valid = 4});
  add_batch_norm(cases, {.name = "rows", .shape = {5, 35}, .group_size = 2, .valid = 4});
  add_batch_norm(cases, {.name = "rows_of_examples", .shape = {8, 24, 4, 4}, .group_size = 4, .valid = 3, .rows_per_example = 2});
  add_batch_norm(cases, {.name = "wide", .shape = {8, 24, 16, 16}, .group_size = 8, .valid = 8});
  add_batch_norm(cases, {.name = "partial", .shape = {6, 64, 8, 8}, .group_size = 3, .valid = 5});
  add_batch_norm(cases, {.name = "many_channels", .shape = {3, 264, 5, 3}, .group_size = 3, .valid = 3});
  add_batch_norm(cases, {.name = "odd_channels", .shape = {4, 130, 5, 5}, .group_size = 4, .valid = 3});
  add_batch_norm(cases, {.name = "empty_group", .shape = {4, 16, 4, 4}, .group_size = 2, .valid = 2});
  add_batch_norm(cases, {.name = "remainder", .shape = {7, 24, 6, 6}, .group_size = 3, .valid = 7});
  add_group_norm(cases, "odd", {3, 36, 3, 2}, 4);
  add_group_norm(cases, "wide", {2, 64, 16, 16}, 8);
  return cases;
}

}  // namespace snug::conformance
