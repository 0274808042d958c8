#include <limits>

#include <fmt/format.h>

#include "conformance/backend_conformance.h"
#include "ops/ops.h"
#include "ops/updates/block_code.h"

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

void add_adamw(std::vector<OpCase>& cases, const std::string& name, const Shape& shape) {
  const OperandSpec a{.shape = shape}, b{.shape = shape}, m{.shape = shape};
  const OperandSpec v{.shape = shape, .low = 0.01, .high = 2}, updates = wide(1, 3, 3), norm = wide(2, 0.2, 0.9);
  const OperandSpec rate = scalars({.seed = 3, .step = 5, .learning_rate = 0.1, .loss_scale = 4});
  const OperandSpec skipping = scalars({.learning_rate = 0.1, .loss_scale = 4, .skip_update = 1});
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const Attributes rule{{"beta1", 0.9}, {"beta2", 0.99}, {"epsilon", 1e-3}, {"weight_decay", 0.1}};
  Attributes at_random = rule;
  at_random.set("stochastic", kOne);
  at_random.set("key", std::int64_t{7});
  const auto add = [&](const OpDef& op, const std::string& what, std::vector<OperandSpec> operands,
                       const Attributes& attributes) {
    cases.push_back({.name = fmt::format("{}_{}_{}", op.name, what, name),
                     .op = &op,
                     .operands = std::move(operands),
                     .attributes = attributes});
  };
  add(ops::adamw, "plain", {a, b, rate, m, v, updates}, rule);
  add(ops::adamw, "clipped", {a, b, rate, m, v, updates, norm}, rule);
  add(ops::adamw, "skipping", {a, b, skipping, m, v, updates}, at_random);
  add(ops::adamw, "not_finite", {a, b, rate, m, v, updates, wide(2, kNaN, kNaN)}, rule);
  add(ops::adamw, "at_random", {a, b, rate, m, v, updates}, at_random);
  const OperandSpec wide_m{.kind = Kind::statistic, .shape = shape};
  const OperandSpec wide_v{.kind = Kind::statistic, .shape = shape, .low = 0.01, .high = 2};
  add(ops::adamw, "wide_moments", {a, b, rate, wide_m, wide_v, updates}, rule);
  add(ops::adamw, "wide_moments_at_random", {a, b, rate, wide_m, wide_v, updates, norm}, at_random);

  const OperandSpec half_m{.kind = Kind::half, .shape = shape, .low = -30000, .high = 30000};
  const OperandSpec half_v{.kind = Kind::half, .shape = shape, .low = 30, .high = 30000};
  const OperandSpec scales{.kind = Kind::single, .shape = {2}, .numbers = {0x1p-15, 0x1p-14}};
  OperandSpec nothing = b, no_moment = half_m, no_scales = scales;
  nothing.low = nothing.high = no_moment.low = no_moment.high = 0;
  no_scales.numbers = {0, 0};
  add(ops::adamw_scaled, "plain", {a, b, rate, half_m, half_v, scales, updates}, rule);
  add(ops::adamw_scaled, "clipped", {a, b, rate, half_m, half_v, scales, updates, norm}, rule);
  add(ops::adamw_scaled, "skipping", {a, b, skipping, half_m, half_v, scales, updates}, at_random);
  add(ops::adamw_scaled, "not_finite", {a, b, rate, half_m, half_v, scales, updates, wide(2, kNaN, kNaN)}, rule);
  add(ops::adamw_scaled, "at_random", {a, b, rate, half_m, half_v, scales, updates}, at_random);
  add(ops::adamw_scaled, "first", {a, b, rate, no_moment, no_moment, no_scales, wide(1, 1, 1)}, rule);
  add(ops::adamw_scaled, "of_nothing", {a, nothing, rate, no_moment, no_moment, no_scales, wide(1, 1, 1)}, rule);
}

void add_quantized_adamw(std::vector<OpCase>& cases, const std::string& name, const Shape& shape, bool row_major = false) {
  const OperandSpec a{.shape = shape, .row_major = row_major}, b = a;
  const OperandSpec m{.kind = Kind::bytes, .shape = {shape.elements()}, .low = 0, .high = 256};
  // Second moments above a tenth of their scale: the smaller they are, the longer the step, and its rounding with it.
  const OperandSpec v{.kind = Kind::bytes, .shape = {shape.elements()}, .low = 127, .high = 256};
  const OperandSpec scales{.kind = Kind::single, .shape = {ops::code_blocks(shape.elements()), 2}, .low = 0.5, .high = 2};
  const OperandSpec updates = wide(1, 3, 3), norm = wide(2, 0.2, 0.9);
  const OperandSpec rate = scalars({.seed = 3, .step = 5, .learning_rate = 0.1, .loss_scale = 4});
  const OperandSpec skipping = scalars({.learning_rate = 0.1, .loss_scale = 4, .skip_update = 1});
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const Attributes rule{{"beta1", 0.9}, {"beta2", 0.99}, {"epsilon", 1e-3}, {"weight_decay", 0.1}};
  Attributes at_random = rule;
  at_random.set("stochastic", kOne);
  at_random.set("key", std::int64_t{7});
  const auto add = [&](const std::string& what, std::vector<OperandSpec> operands, const Attributes& attributes,
                       double terms = 8) {
    cases.push_back({.name = "adamw_quantized_" + what + "_" + name,
                     .op = &ops::adamw_quantized,
                     .operands = std::move(operands),
                     .attributes = attributes,
                     .terms = terms});
  };
  OperandSpec nothing = b, no_codes = m, no_scales = scales;
  nothing.low = nothing.high = no_codes.low = no_codes.high = no_scales.low = no_scales.high = 0;
  add("plain", {a, b, rate, m, v, scales, updates}, rule);
  add("clipped", {a, b, rate, m, v, scales, updates, norm}, rule);
  add("skipping", {a, b, skipping, m, v, scales, updates}, at_random);
  add("not_finite", {a, b, rate, m, v, scales, updates, wide(2, kNaN, kNaN)}, rule);
  add("at_random", {a, b, rate, m, v, scales, updates}, at_random);
  add("of_any_code", {a, b, scalars({.learning_rate = 1e-3}), m, m, scales, updates}, rule, 200);
  add("first", {a, b, rate, no_codes, no_codes, no_scales, wide(1, 1, 1)}, rule);
  add("of_nothing", {a, nothing, rate, no_codes, no_codes, no_scales, wide(1, 1, 1)}, rule);
}

void add_quantized(std::vector<OpCase>& cases, const std::string& name, const Shape& shape, bool row_major = false) {
  const OperandSpec a{.shape = shape, .row_major = row_major}, b = a;
  const OperandSpec codes{.kind = Kind::bytes, .shape = {shape.elements()}, .low = 0, .high = 256};
  const OperandSpec scales{.kind = Kind::single, .shape = {ops::code_blocks(shape.elements())}, .low = 0.01, .high = 2};
  const OperandSpec rate = scalars({.learning_rate = 0.1, .loss_scale = 4});
  const OperandSpec skipping = scalars({.learning_rate = 0.1, .loss_scale = 4, .skip_update = 1});
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const Attributes nesterov{{"momentum", 0.9}, {"weight_decay", 0.1}, {"nesterov", kOne}};
  const Attributes heavy_ball{{"momentum", 0.9}, {"weight_decay", 0.0}, {"nesterov", kOne * 0}};
  const auto add = [&](const std::string& what, std::vector<OperandSpec> operands, const Attributes& attributes) {
    cases.push_back({.name = "sgd_quantised_" + what + "_" + name,
                     .op = &ops::sgd_quantized,
                     .operands = std::move(operands),
                     .attributes = attributes,
                     .host_only = true});
  };
  OperandSpec nothing = b;
  nothing.low = nothing.high = 0;
  OperandSpec no_scale = scales;
  no_scale.low = no_scale.high = 0;
  add("nesterov", {a, b, rate, codes, scales}, nesterov);
  add("heavy_ball", {a, b, rate, codes, scales}, heavy_ball);
  add("of_nothing", {a, nothing, rate, codes, no_scale}, heavy_ball);
  add("skipping", {a, b, skipping, codes, scales}, nesterov);
  add("clipped", {a, b, rate, codes, scales, wide(2, 0.2, 0.9)}, nesterov);
  add("not_finite", {a, b, rate, codes, scales, wide(2, kNaN, kNaN)}, nesterov);
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
  for (const std::uint64_t first_example : {0, 5}) {
    const OperandSpec m{.shape = {4, 32, 9, 7}}, w = m;
    const std::string name = first_example == 0 ? "first" : "later";
    const std::uint16_t is_first = first_example == 0 ? 1 : 0;
    cases.push_back({.name = "momentum_add_" + name,
                     .op = &ops::momentum_add,
                     .operands = {m, w, scalars({.first_example = first_example})},
                     .attributes = {{"summand", kOne}},
                     .host_only = true});
    cases.push_back({.name = "momentum_decay_" + name,
                     .op = &ops::momentum_decay,
                     .operands = {m, w, scalars({.is_first_microbatch = is_first})},
                     .attributes = {{"momentum", 0.9}, {"weight_decay", 0.1}},
                     .host_only = true});
    cases.push_back({.name = "momentum_step_" + name,
                     .op = &ops::momentum_step,
                     .operands = {w, scalars({.learning_rate = 0.1, .skip_update = std::uint16_t{first_example != 0}}), m},
                     .host_only = true});
  }
  add_quantized(cases, "one", {1});
  add_quantized(cases, "images", {3, 5, 3, 3});
  add_quantized(cases, "row_major", {5, 7, 4, 3}, true);
  add_quantized(cases, "many", {17, 9, 7, 5});
  add_quantized_adamw(cases, "one", {1});
  add_quantized_adamw(cases, "images", {3, 5, 3, 3});
  add_quantized_adamw(cases, "row_major", {5, 7, 4, 3}, true);
  add_quantized_adamw(cases, "many", {17, 9, 7, 5});
  add_quantized_adamw(cases, "whole_blocks", {64, 96});
  cases.push_back({.name = "fill_of_bytes",
                   .op = &ops::fill,
                   .operands = {{.kind = Kind::bytes, .shape = {77}, .low = 0, .high = 256}},
                   .attributes = {{"value", 0.0}}});
  cases.push_back({.name = "fill_of_halves",
                   .op = &ops::fill,
                   .operands = {{.kind = Kind::half, .shape = {77}}},
                   .attributes = {{"value", 0.3}}});
  for (const auto& [name, shape] :
       std::vector<std::pair<std::string, Shape>>{{"images", {3, 5, 3, 3}}, {"one", {1}}, {"many", {4, 32, 9, 7}}})
    add_adamw(cases, name, shape);
  for (const bool skips : {false, true}) {
    cases.push_back({.name = skips ? "count_update_skipping" : "count_update",
                     .op = &ops::count_update,
                     .operands = {wide(1, 3, 3), scalars({.skip_update = std::uint16_t{skips}})}});
  }
  add_updates(cases, "images", {3, 5, 3, 3});
  add_updates(cases, "one", {1});
  add_updates(cases, "many", {4, 32, 9, 7});
  return cases;
}

}  // namespace snug::conformance
