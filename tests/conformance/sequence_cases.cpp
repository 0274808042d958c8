#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "conformance/backend_conformance.h"
#include "ops/ops.h"

namespace snug::conformance {

namespace {

using Kind = OperandSpec::Kind;

OperandSpec real(Shape shape, double size = 1) { return {.shape = shape, .low = -size, .high = size}; }
OperandSpec statistic(Shape shape) { return {.kind = Kind::statistic, .shape = shape}; }
OperandSpec positive(Shape shape) { return {.kind = Kind::statistic, .shape = shape, .low = 0.1, .high = 1.0}; }

// Every seventh index is none: just outside of `below`, and far.
OperandSpec indices(std::int64_t count, std::int64_t below) {
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < count; ++i) {
    constexpr std::array<double, 4> kNone{-1, -100, 2147483647, -2147483648.0};
    const auto inside = static_cast<double>(i * 7919 % 104729 % below);
    numbers.push_back(i % 7 != 3 ? inside : i % 14 == 3 ? static_cast<double>(below) : kNone[static_cast<std::size_t>(i) % 4]);
  }
  return {.kind = Kind::labels, .shape = {count}, .numbers = numbers};
}

void add_tokens(std::vector<OpCase>& cases, std::int64_t examples, std::int64_t length, std::int64_t columns,
                std::int64_t vocabulary) {
  const std::int64_t rows = examples * length;
  const std::string size = fmt::format("{}x{}x{}_of_{}", examples, length, columns, vocabulary);
  const OperandSpec tokens = indices(rows, vocabulary), x = real({rows, columns}), dy = real({rows, columns});
  const auto terms = static_cast<double>(rows) + 8;
  cases.push_back({"embedding_" + size, &ops::embedding, {tokens, real({vocabulary, columns})}});
  cases.push_back({"embedding_grad_" + size, &ops::embedding_grad, {tokens, dy}, {{"rows", vocabulary}}, terms});
  for (const std::int64_t positions : {length, length + 3}) {
    const std::string name = fmt::format("{}_of_{}_positions", size, positions);
    const Attributes forward{{"rows_per_example", length}};
    Attributes backward = forward;
    backward.set("positions", positions);
    cases.push_back({"add_positions_" + name, &ops::add_positions, {x, real({positions, columns})}, forward});
    cases.push_back({"add_positions_grad_" + name, &ops::add_positions_grad, {dy}, backward, terms});
  }
}

void add_norms(std::vector<OpCase>& cases, std::int64_t rows, std::int64_t columns) {
  const std::string size = fmt::format("{}x{}", rows, columns);
  const OperandSpec x = real({rows, columns}), dy = real({rows, columns}), weight = statistic({columns}),
                    bias = statistic({columns});
  const OperandSpec mean = statistic({rows}), inverse = positive({rows});
  const Attributes epsilon{{"epsilon", 1e-5}};
  const double summed_rows = 4 * static_cast<double>(rows) + 64;
  // With few columns the deviation may be close to zero, so that rounding errors grow.
  const double terms = columns < 8 ? 1024 : 64;
  cases.push_back({"layer_norm_" + size, &ops::layer_norm, {x, weight, bias}, epsilon, terms});
  cases.push_back({"layer_norm_grad_input_" + size, &ops::layer_norm_grad_input, {dy, x, weight, mean, inverse}, {}, 256});
  cases.push_back(
      {"layer_norm_grad_parameters_" + size, &ops::layer_norm_grad_parameters, {dy, x, mean, inverse}, {}, summed_rows});
  cases.push_back({"rms_norm_" + size, &ops::rms_norm, {x, weight}, epsilon, terms});
  cases.push_back({"rms_norm_grad_input_" + size, &ops::rms_norm_grad_input, {dy, x, weight, inverse}, {}, 256});
  cases.push_back({"rms_norm_grad_weight_" + size, &ops::rms_norm_grad_weight, {dy, x, inverse}, {}, summed_rows});
  // Rows of equal numbers have no deviation: epsilon alone keeps the result finite.
  OperandSpec equal = x;
  equal.low = equal.high = 0.5;
  cases.push_back({"layer_norm_of_equal_numbers_" + size, &ops::layer_norm, {equal, weight, bias}, epsilon, terms});
}

void add_pointwise(std::vector<OpCase>& cases, std::int64_t rows, std::int64_t columns) {
  const std::string size = fmt::format("{}x{}", rows, columns);
  const OperandSpec dy = real({rows, columns}), x = real({rows, columns}, 4), both = real({rows, 2 * columns}, 4);
  cases.push_back({"silu_" + size, &ops::silu, {x}});
  cases.push_back({"silu_grad_" + size, &ops::silu_grad, {dy, x}});
  // Far from zero, where exponentials over- and underflow.
  cases.push_back({"silu_far_" + size, &ops::silu, {real({rows, columns}, 300)}});
  cases.push_back({"silu_grad_far_" + size, &ops::silu_grad, {dy, real({rows, columns}, 300)}});
  const std::array<const char*, 3> names{"sigmoid", "silu", "gelu"};
  for (std::int64_t activation = 0; activation < 3; ++activation) {
    const std::string name = fmt::format("{}_{}", names[static_cast<std::size_t>(activation)], size);
    const Attributes attributes{{"activation", activation}};
    cases.push_back({"gated_by_" + name, &ops::gated_linear_unit, {both}, attributes, 64});
    cases.push_back({"gated_by_" + name + "_grad", &ops::gated_linear_unit_grad, {dy, both}, attributes, 64});
  }
}

void add_rotary(std::vector<OpCase>& cases, std::int64_t examples, std::int64_t length, std::int64_t heads,
                std::int64_t head_size, std::int64_t others) {
  const std::int64_t rows = examples * length;
  for (const std::int64_t inverse : {0, 1}) {
    cases.push_back(
        {fmt::format("rotary{}_{}x{}x{}x{}_and_{}", inverse == 1 ? "_back" : "", examples, length, heads, head_size, others),
         &ops::rotary,
         {real({rows, heads * head_size + others})},
         {{"heads", heads}, {"head_size", head_size}, {"base", 10000.0}, {"rows_per_example", length}, {"inverse", inverse}}});
  }
}

void add_at_positions(std::vector<OpCase>& cases, std::int64_t rows, std::int64_t most, std::int64_t columns) {
  cases.push_back({fmt::format("add_positions_at_{}x{}_of_{}", rows, columns, most),
                   &ops::add_positions_at,
                   {real({rows, columns}), real({most, columns}), positions_of_rows(rows, most)}});
}

void add_rotary_at(std::vector<OpCase>& cases, std::int64_t rows, std::int64_t most, std::int64_t heads, std::int64_t head_size,
                   std::int64_t others) {
  for (const std::int64_t inverse : {0, 1}) {
    cases.push_back(
        {fmt::format("rotary{}_at_{}x{}x{}_and_{}_of_{}", inverse == 1 ? "_back" : "", rows, heads, head_size, others, most),
         &ops::rotary_at,
         {real({rows, heads * head_size + others}), positions_of_rows(rows, most)},
         {{"heads", heads}, {"head_size", head_size}, {"base", 10000.0}, {"inverse", inverse}}});
  }
}

void add_softmax(std::vector<OpCase>& cases, const std::string& name, Shape shape) {
  const auto like = [&](double low, double high) {
    return OperandSpec{.shape = shape, .low = low, .high = high, .row_major = true};
  };
  cases.push_back({"softmax_" + name, &ops::softmax, {like(-4, 4)}, {}, 64});
  cases.push_back({"softmax_far_" + name, &ops::softmax, {like(-1000, 1000)}, {}, 64});
  cases.push_back(
      {"softmax_grad_" + name, &ops::softmax_grad, {like(-1, 1), like(0, 0.2)}, {}, static_cast<double>(shape.dims().back())});
}

void add_batched_product(std::vector<OpCase>& cases, std::int64_t batch, std::int64_t rows, std::int64_t depth,
                         std::int64_t columns) {
  for (const std::int64_t a : {0, 1}) {
    for (const std::int64_t b : {0, 1}) {
      cases.push_back(
          {fmt::format("batched_product_{}x{}x{}x{}_{}{}", batch, rows, depth, columns, a == 1 ? "t" : "n", b == 1 ? "t" : "n"),
           &ops::batched_product,
           {real(a == 1 ? Shape{batch, depth, rows} : Shape{batch, rows, depth}),
            real(b == 1 ? Shape{batch, columns, depth} : Shape{batch, depth, columns})},
           {{"transpose_a", a}, {"transpose_b", b}},
           static_cast<double>(depth) + 8});
    }
  }
}

struct Loss {
  std::int64_t examples, length, columns, classes;
  std::uint32_t valid;
  bool every_form = true;  // with and without smoothing and weights
};

void add_linear_cross_entropy(std::vector<OpCase>& cases, const Loss& l) {
  const std::int64_t rows = l.examples * l.length;
  const Scalars scalars{.valid_examples = l.valid, .total_weight = static_cast<double>(rows) + 9, .loss_scale = 32};
  // Labels of padding are garbage, those that are no class are ignored.
  const std::vector<OperandSpec> plain{real({rows, l.columns}),
                                       real({l.classes, l.columns}),
                                       indices(rows, l.classes),
                                       {.kind = Kind::scalars, .scalars = scalars}};
  std::vector<OperandSpec> weighted = plain;
  std::vector<double> weights;
  for (std::int64_t r = 0; r < rows; ++r) weights.push_back(0.5 * static_cast<double>(r % 4));
  weighted.push_back({.kind = Kind::statistic, .shape = {rows}, .numbers = weights});
  const auto terms = static_cast<double>(2 * l.columns + rows) + 64;
  // Of a row all gradients of logits together are at most twice its weight, of a column those of all rows with that label.
  const double rounded = 4 * scalars.loss_scale / scalars.total_weight;
  for (const double smoothing : {0.0, 0.1}) {
    for (const auto& [how, operands] : {std::pair("", plain), std::pair("_weighted", weighted)}) {
      if (!l.every_form && (smoothing == 0 || operands.size() == plain.size())) continue;
      const Attributes attributes{{"label_smoothing", smoothing}, {"rows_per_example", l.length}};
      const std::string name =
          fmt::format("{}x{}x{}x{}{}{}", l.examples, l.length, l.columns, l.classes, smoothing > 0 ? "_smoothed" : "", how);
      cases.push_back({"linear_cross_entropy_" + name, &ops::linear_cross_entropy, operands, attributes, terms});
      cases.push_back(
          {"linear_cross_entropy_step_" + name, &ops::linear_cross_entropy_step, operands, attributes, terms, rounded});
    }
  }
}

}  // namespace

OperandSpec positions_of_rows(std::int64_t count, std::int64_t most) {
  const auto end = static_cast<double>(most);
  const std::vector<double> chosen{0, end - 1, std::floor(end / 2), -1, end, -2147483648.0, 2147483647};
  std::vector<double> numbers;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
    numbers.push_back(i < chosen.size() ? chosen[i] : static_cast<double>(static_cast<std::int64_t>(i) * 7919 % most));
  return {.kind = Kind::labels, .shape = {count}, .numbers = numbers};
}

std::vector<OpCase> sequence_cases() {
  std::vector<OpCase> cases;
  add_tokens(cases, 3, 5, 7, 11);
  add_tokens(cases, 4, 1, 1, 3);
  add_tokens(cases, 2, 33, 64, 300);
  add_tokens(cases, 2, 100, 130, 2);
  add_norms(cases, 6, 7);
  add_norms(cases, 3, 1);
  add_norms(cases, 70, 64);
  add_norms(cases, 5, 768);
  add_norms(cases, 300, 33);
  add_norms(cases, 2, 5003);
  // A mean far from zero: the variance must keep its digits.
  const OperandSpec shifted{.shape = {9, 96}, .low = 99, .high = 101};
  cases.push_back(
      {"layer_norm_far_from_zero", &ops::layer_norm, {shifted, statistic({96}), statistic({96})}, {{"epsilon", 1e-5}}, 2048});
  cases.push_back({"rms_norm_far_from_zero", &ops::rms_norm, {shifted, statistic({96})}, {{"epsilon", 1e-5}}, 64});
  add_pointwise(cases, 3, 1);
  add_pointwise(cases, 5, 7);
  add_pointwise(cases, 33, 96);
  add_rotary(cases, 3, 5, 2, 4, 3);
  add_rotary(cases, 2, 1, 1, 2, 0);
  add_rotary(cases, 2, 300, 4, 64, 128);
  add_rotary(cases, 1, 17, 3, 6, 1);
  add_at_positions(cases, 9, 5, 7);
  add_at_positions(cases, 1, 1, 1);
  add_at_positions(cases, 40, 300, 64);
  add_at_positions(cases, 17, 1024, 768);
  add_rotary_at(cases, 9, 5, 2, 4, 3);
  add_rotary_at(cases, 1, 1, 1, 2, 0);
  add_rotary_at(cases, 33, 300, 4, 64, 128);
  add_rotary_at(cases, 12, 17, 3, 6, 1);
  add_softmax(cases, "vector", {9});
  add_softmax(cases, "rows", {5, 33});
  add_softmax(cases, "heads", {2, 3, 7, 65});
  add_softmax(cases, "wide", {3, 5000});
  add_batched_product(cases, 3, 5, 7, 4);
  add_batched_product(cases, 1, 1, 3, 1);
  add_batched_product(cases, 4, 64, 32, 48);
  add_batched_product(cases, 2, 33, 130, 65);
  add_linear_cross_entropy(cases, {.examples = 3, .length = 5, .columns = 7, .classes = 3, .valid = 3});
  add_linear_cross_entropy(cases, {.examples = 4, .length = 1, .columns = 1, .classes = 1, .valid = 2});
  add_linear_cross_entropy(cases, {.examples = 5, .length = 20, .columns = 50, .classes = 65, .valid = 4});
  add_linear_cross_entropy(cases, {.examples = 3, .length = 47, .columns = 64, .classes = 517, .valid = 3});
  // More rows than have logits at a time.
  add_linear_cross_entropy(cases, {.examples = 3, .length = 1400, .columns = 8, .classes = 67, .valid = 3, .every_form = false});
  // More rows, classes and columns than a kernel takes at a time.
  add_linear_cross_entropy(cases, {.examples = 3, .length = 401, .columns = 24, .classes = 33, .valid = 3});
  add_linear_cross_entropy(cases, {.examples = 2, .length = 10, .columns = 150, .classes = 2100, .valid = 2});
  return cases;
}

}  // namespace snug::conformance
