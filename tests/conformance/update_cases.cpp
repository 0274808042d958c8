#include <limits>

#include <fmt/format.h>

#include "conformance/backend_conformance.h"
#include "ops/ops.h"

// The update's ops beside plain sgd: the sum of squares, the factor that clips, and sgd with it.

namespace snug::conformance {

namespace {

using Kind = OperandSpec::Kind;

constexpr std::int64_t kOne = 1;

OperandSpec scalars(const Scalars& block) { return {.kind = Kind::scalars, .scalars = block}; }
OperandSpec wide(std::int64_t count, double low, double high) {
  return {.kind = Kind::wide, .shape = {count}, .low = low, .high = high};
}

void add_sums(std::vector<OpCase>& cases, const std::string& name, Shape shape, bool row_major = false) {
  const OperandSpec gradient{.shape = shape, .row_major = row_major};
  // Summed in double: no error of summing is allowed for.
  cases.push_back({"sum_of_squares_" + name, &ops::sum_of_squares, {gradient}, {}, 0});
  cases.push_back({"sum_of_squares_chained_" + name, &ops::sum_of_squares, {gradient, wide(1, 3, 4)}, {}, 0});
}

void add_updates(std::vector<OpCase>& cases, const std::string& name, Shape shape) {
  const OperandSpec a{.shape = shape}, b{.shape = shape}, m{.shape = shape};
  const OperandSpec rate = scalars({.learning_rate = 0.1, .loss_scale = 4});
  const OperandSpec skipping = scalars({.learning_rate = 0.1, .loss_scale = 4, .skip_update = 1});
  const OperandSpec norm = wide(2, 0.2, 0.9);
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const Attributes nesterov{{"momentum", 0.9}, {"weight_decay", 0.1}, {"nesterov", kOne}};
  const Attributes heavy_ball{{"momentum", 0.9}, {"weight_decay", 0.0}, {"nesterov", kOne * 0}};
  const Attributes plain{{"momentum", 0.0}, {"weight_decay", 0.1}, {"nesterov", kOne * 0}};
  const auto add = [&](const std::string& what, std::vector<OperandSpec> operands, const Attributes& attributes) {
    cases.push_back({"clipped_sgd_" + what + "_" + name, &ops::sgd, std::move(operands), attributes});
  };
  add("plain", {a, b, rate, norm}, plain);
  add("momentum", {a, b, rate, m, norm}, heavy_ball);
  add("nesterov", {a, b, rate, m, norm}, nesterov);
  add("skipping", {a, b, skipping, m, norm}, nesterov);
  add("not_finite", {a, b, rate, m, wide(2, kNaN, kNaN)}, nesterov);
  add("not_finite_plain", {a, b, rate, wide(2, kNaN, kNaN)}, plain);
}

}  // namespace

std::vector<OpCase> update_cases() {
  std::vector<OpCase> cases;
  add_sums(cases, "images", {3, 5, 3, 3});
  add_sums(cases, "row_major", {3, 5, 3, 3}, true);
  add_sums(cases, "one", {1});
  add_sums(cases, "vector", {13});
  add_sums(cases, "many", {64, 32, 3, 3});  // several threads, several blocks
  add_sums(cases, "odd", {50021});
  for (const float clip_norm : {0.5F, 100.0F, std::numeric_limits<float>::infinity()}) {
    cases.push_back({fmt::format("clip_factor_{}", clip_norm),
                     &ops::clip_factor,
                     {wide(1, 30, 40), scalars({.loss_scale = 4, .clip_norm = clip_norm})},
                     {},
                     0});
  }
  cases.push_back({"clip_factor_of_nothing", &ops::clip_factor, {wide(1, 0, 0), scalars({.clip_norm = 1})}, {}, 0});
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  cases.push_back({"finite_factor", &ops::finite_factor, {wide(3, 1, 2)}, {}, 0});
  cases.push_back({"finite_factor_of_nan", &ops::finite_factor, {wide(3, kNaN, kNaN)}, {}, 0});
  add_updates(cases, "images", {3, 5, 3, 3});
  add_updates(cases, "one", {1});
  add_updates(cases, "many", {4, 32, 9, 7});
  return cases;
}

}  // namespace snug::conformance
