#include <fmt/format.h>

#include "conformance/backend_conformance.h"
#include "ops/ops.h"

namespace snug::conformance {

namespace {

using Integers = std::vector<std::int64_t>;
using Kind = OperandSpec::Kind;

OperandSpec real(Shape shape) { return {.shape = shape}; }
OperandSpec row_major(Shape shape) { return {.shape = shape, .row_major = true}; }
OperandSpec scalars(const Scalars& block) { return {.kind = Kind::scalars, .scalars = block}; }

constexpr std::int64_t kOne = 1;

void add_elementwise(std::vector<OpCase>& cases, const std::string& name, Shape shape) {
  const OperandSpec a = real(shape), b = real(shape), m = real(shape),
                    bits{.kind = Kind::bits, .shape = shape, .low = 0, .high = 2};
  const OperandSpec draws = scalars({.seed = 1, .step = 2, .first_example = 3});
  const OperandSpec rate = scalars({.learning_rate = 0.1, .loss_scale = 4});
  const OperandSpec skipping = scalars({.learning_rate = 0.1, .loss_scale = 4, .skip_update = 1});
  const Attributes nesterov{{"momentum", 0.9}, {"weight_decay", 0.1}, {"nesterov", kOne}};
  const Attributes heavy_ball{{"momentum", 0.9}, {"weight_decay", 0.0}, {"nesterov", kOne * 0}};
  const Attributes plain{{"momentum", 0.0}, {"weight_decay", 0.1}, {"nesterov", kOne * 0}};
  const auto add = [&](const std::string& what, const OpDef& op, std::vector<OperandSpec> operands,
                       const Attributes& attributes = {}) {
    cases.push_back({what + "_" + name, &op, std::move(operands), attributes});
  };
  add("relu", ops::relu, {a});
  add("relu_grad", ops::relu_grad, {a, b});
  add("relu_grad_bits", ops::relu_grad_bits, {a, bits});
  add("sign_bits", ops::sign_bits, {a});
  const OperandSpec x{.shape = shape, .low = -4, .high = 4};
  for (const auto& [form, tanh] : {std::pair("gelu", kOne * 0), std::pair("gelu_by_tanh", kOne)}) {
    cases.push_back({fmt::format("{}_{}", form, name), &ops::gelu, {x}, {{"tanh", tanh}}});
    cases.push_back({fmt::format("{}_grad_{}", form, name), &ops::gelu_grad, {a, x}, {{"tanh", tanh}}});
  }
  add("add", ops::add, {a, b});
  add("dropout", ops::dropout, {a, draws}, {{"probability", 0.4}, {"key", kOne}});
  add("dropout_of_several_rows", ops::dropout, {a, draws}, {{"probability", 0.4}, {"key", kOne}, {"rows_per_example", shape[0]}});
  add("dropout_alike_for_all", ops::dropout, {a, draws}, {{"probability", 0.4}, {"key", kOne}, {"rows_per_example", kOne * 0}});
  add("dropout_of_nothing", ops::dropout, {a, draws}, {{"probability", 0.0}, {"key", kOne * 3}});
  add("fill", ops::fill, {a}, {{"value", 0.3}});
  add("init_normal", ops::init_normal, {a, scalars({.seed = 4})}, {{"std", 0.1}, {"key", kOne * 7}});
  add("init_uniform", ops::init_uniform, {a, scalars({.seed = 4})}, {{"bound", 0.1}, {"key", kOne * 7}});
  add("sgd", ops::sgd, {a, b, rate}, plain);
  add("sgd_momentum", ops::sgd, {a, b, rate, m}, heavy_ball);
  add("sgd_nesterov", ops::sgd, {a, b, rate, m}, nesterov);
  add("sgd_skipping", ops::sgd, {a, b, skipping, m}, nesterov);
}

void add_pools(std::vector<OpCase>& cases, const std::string& name, Shape input, std::int64_t kernel, std::int64_t stride,
               std::int64_t padding) {
  const Attributes attributes{
      {"kernel", Integers{kernel, kernel}}, {"stride", Integers{stride, stride}}, {"padding", Integers{padding, padding}}};
  Attributes backward = attributes;
  backward.set("input_shape", Integers(input.dims().begin(), input.dims().end()));
  const auto out = [&](std::int64_t size) { return (size + 2 * padding - kernel) / stride + 1; };
  const Shape output{input[0], input[1], out(input[2]), out(input[3])};
  const OperandSpec x = real(input), dy = real(output);
  const OperandSpec argmax{.kind = Kind::argmax, .shape = output, .low = 0, .high = static_cast<double>(kernel * kernel)};
  const auto terms = static_cast<double>(kernel * kernel) + 8;
  cases.push_back({"max_pool_" + name, &ops::max_pool, {x}, attributes});
  cases.push_back({"max_pool_grad_" + name, &ops::max_pool_grad, {dy, x}, attributes, terms});
  cases.push_back({"max_pool_argmax_" + name, &ops::max_pool_argmax, {x}, attributes});
  cases.push_back({"max_pool_grad_argmax_" + name, &ops::max_pool_grad_argmax, {dy, argmax}, backward, terms});
  cases.push_back({"avg_pool_" + name, &ops::avg_pool, {x}, attributes, terms});
  cases.push_back({"avg_pool_grad_" + name, &ops::avg_pool_grad, {dy}, backward, terms});
}

void add_whole_images(std::vector<OpCase>& cases, const std::string& name, Shape shape, std::int64_t channels,
                      std::int64_t stride) {
  const Integers dims(shape.dims().begin(), shape.dims().end());
  const auto pixels = static_cast<double>(shape[2] * shape[3]);
  cases.push_back({"global_avg_pool_" + name, &ops::global_avg_pool, {real(shape)}, {}, pixels});
  cases.push_back(
      {"global_avg_pool_grad_" + name, &ops::global_avg_pool_grad, {real({shape[0], shape[1]})}, {{"input_shape", dims}}});
  const Attributes attributes{{"stride", stride}, {"channels", channels}};
  Attributes backward = attributes;
  backward.set("input_shape", dims);
  const Shape output{shape[0], channels, (shape[2] + stride - 1) / stride, (shape[3] + stride - 1) / stride};
  cases.push_back({"shortcut_" + name, &ops::shortcut, {real(shape)}, attributes});
  cases.push_back({"shortcut_grad_" + name, &ops::shortcut_grad, {real(output)}, backward});
  cases.push_back({"relayout_to_row_major_" + name, &ops::relayout, {real(shape)}, {{"channels_last", kOne * 0}}});
  cases.push_back({"relayout_to_channels_last_" + name, &ops::relayout, {row_major(shape)}, {{"channels_last", kOne}}});
  for (const bool from_host : {false, true}) {
    OperandSpec x = real(shape);
    x.on_host = from_host;
    const std::string from = from_host ? "from_host_" : "from_device_";
    cases.push_back({"copy_to_host_" + from + name, &ops::copy_to_space, {x}, {{"host", kOne}}});
    cases.push_back({"copy_to_device_" + from + name, &ops::copy_to_space, {x}, {{"host", kOne * 0}}});
  }
  cases.push_back(
      {"reshape_" + name, &ops::reshape, {row_major(shape)}, {{"shape", Integers{dims[0], dims[1] * dims[2] * dims[3]}}}});
  cases.push_back({"sum_to_channels_" + name, &ops::sum_to_channels, {real(shape)}, {}, pixels * static_cast<double>(shape[0])});
}

void add_ends(std::vector<OpCase>& cases) {
  for (const std::int64_t rows : {4, 200}) {
    cases.push_back(
        {fmt::format("sum_to_channels_{}_rows", rows), &ops::sum_to_channels, {real({rows, 35})}, {}, static_cast<double>(rows)});
  }
  for (const auto& [rows, classes] : {std::pair<std::int64_t, std::int64_t>{5, 7}, {100, 10}, {33, 1000}}) {
    const std::vector<OperandSpec> operands{
        {.shape = {rows, classes}, .low = -4, .high = 4},
        {.kind = Kind::labels, .shape = {rows}, .low = 0, .high = static_cast<double>(classes)},
        scalars({.valid_examples = static_cast<std::uint32_t>(rows - 1), .total_weight = 109, .loss_scale = 32})};
    for (const double smoothing : {0.0, 0.1}) {
      const Attributes attributes{{"label_smoothing", smoothing}};
      const std::string name = fmt::format("{}x{}{}", rows, classes, smoothing > 0 ? "_smoothed" : "");
      cases.push_back({"softmax_cross_entropy_" + name, &ops::softmax_cross_entropy, operands, attributes, 64});
      cases.push_back({"softmax_cross_entropy_grad_" + name, &ops::softmax_cross_entropy_grad, operands, attributes});
    }
    // Rows of two examples, the second padding from its first row on, with a weight each.
    std::vector<OperandSpec> weighted = operands;
    weighted[2] = scalars({.valid_examples = 1, .total_weight = 50, .loss_scale = 32});
    std::vector<double> weights;
    for (std::int64_t n = 0; n < rows; ++n) weights.push_back(0.5 * static_cast<double>(n % 4));
    weighted.push_back({.kind = Kind::statistic, .shape = {rows}, .numbers = weights});
    const std::int64_t rows_per_example = rows % 2 == 0 ? rows / 2 : rows;
    const Attributes attributes{{"label_smoothing", 0.1}, {"rows_per_example", rows_per_example}};
    const std::string name = fmt::format("{}x{}_weighted", rows, classes);
    cases.push_back({"softmax_cross_entropy_" + name, &ops::softmax_cross_entropy, weighted, attributes, 64});
    cases.push_back({"softmax_cross_entropy_grad_" + name, &ops::softmax_cross_entropy_grad, weighted, attributes});
  }
  const std::vector<std::pair<std::string, Shape>> sizes{
      {"", {9, 3, 6, 5}}, {"_gray", {5, 1, 7, 9}}, {"_large", {3, 3, 40, 33}}, {"_one", {1, 4, 3, 3}}};
  for (std::size_t i = 0; i < 2 * sizes.size(); ++i) {
    const std::int64_t augment = i % 2 == 0 ? 0 : 1;
    const auto& size = sizes[i / 2];
    const auto channels = static_cast<std::size_t>(size.second[1]);
    std::vector<double> mean{120, 110, 100, 90}, deviation{60, 61, 62, 63};
    mean.resize(channels);
    deviation.resize(channels);
    cases.push_back({fmt::format("image_input_{}{}", augment != 0 ? "augmented" : "plain", size.first),
                     &ops::image_input,
                     {{.kind = Kind::bytes, .shape = size.second, .low = 0, .high = 256},
                      scalars({.seed = 1, .step = 2, .first_example = 3})},
                     {{"mean", mean}, {"std", deviation}, {"augment", augment}, {"padding", kOne * 2}, {"bits", kOne * 32}}});
  }
}

}  // namespace

std::vector<OpCase> other_cases() {
  std::vector<OpCase> cases;
  add_elementwise(cases, "images", {3, 5, 3, 3});
  add_elementwise(cases, "rows", {7, 11});
  add_elementwise(cases, "vector", {13});
  add_elementwise(cases, "one", {1});
  add_elementwise(cases, "many", {4, 32, 9, 7});
  add_elementwise(cases, "many_rows", {5, 517});
  add_pools(cases, "2x2", {2, 8, 8, 6}, 2, 2, 0);
  add_pools(cases, "overlapping", {3, 7, 7, 6}, 3, 2, 1);
  add_pools(cases, "5x5", {3, 7, 7, 6}, 5, 2, 1);
  add_pools(cases, "wide", {4, 48, 16, 16}, 2, 2, 0);
  add_pools(cases, "remainder", {2, 20, 9, 7}, 2, 3, 0);
  add_whole_images(cases, "odd", {3, 5, 5, 4}, 7, 2);
  add_whole_images(cases, "wide", {4, 32, 8, 8}, 64, 2);
  add_whole_images(cases, "same_size", {2, 16, 4, 4}, 32, 1);
  add_whole_images(cases, "many_channels", {2, 520, 7, 7}, 520, 1);
  add_ends(cases);
  return cases;
}

}  // namespace snug::conformance
