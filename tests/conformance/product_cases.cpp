#include <fmt/format.h>

#include "conformance/backend_conformance.h"
#include "ops/conv2d.h"
#include "ops/ops.h"

namespace snug::conformance {

namespace {

using Integers = std::vector<std::int64_t>;

OperandSpec real(Shape shape) { return {.shape = shape}; }

// A bias is at most this large, so a product before it is at most that much larger than the result.
constexpr double kBias = 1;

struct Convolution {
  std::string name;
  Shape input, weight;
  Integers stride{1, 1}, padding{1, 1}, dilation{1, 1};
  std::int64_t groups = 1;
  bool bias = false;
};

void add_convolution(std::vector<OpCase>& cases, const Convolution& c) {
  const Attributes attributes{{"stride", c.stride}, {"padding", c.padding}, {"dilation", c.dilation}, {"groups", c.groups}};
  const auto g = ops::Conv2dGeometry::from(c.input, c.weight, attributes);
  const Shape output{g.batch, g.out_channels, g.out_height, g.out_width};
  Attributes for_input = attributes, for_weight = attributes;
  for_input.set("input_shape", Integers(c.input.dims().begin(), c.input.dims().end()));
  for_weight.set("kernel", Integers{g.kernel_height, g.kernel_width});
  const auto taps = static_cast<double>(g.kernel_height * g.kernel_width);
  const auto count = [](std::int64_t n) { return static_cast<double>(n); };
  std::vector<OperandSpec> forward{real(c.input), real(c.weight)};
  if (c.bias) forward.push_back(real({g.out_channels}));
  cases.push_back({"conv2d_" + c.name, &ops::conv2d, forward, attributes, taps * count(c.weight[1]) + 8, c.bias ? kBias : 0.0});
  cases.push_back({"conv2d_grad_input_" + c.name,
                   &ops::conv2d_grad_input,
                   {real(output), real(c.weight)},
                   for_input,
                   taps * count(g.out_channels / g.groups) + 8});
  cases.push_back({"conv2d_grad_weight_" + c.name,
                   &ops::conv2d_grad_weight,
                   {real(output), real(c.input)},
                   for_weight,
                   count(g.batch * g.out_height * g.out_width) + 8});
}

void add_linear(std::vector<OpCase>& cases, std::int64_t batch, std::int64_t in, std::int64_t out) {
  const std::string size = fmt::format("{}x{}x{}", batch, in, out);
  const OperandSpec x = real({batch, in}), weight = real({out, in}), dy = real({batch, out});
  const auto count = [](std::int64_t n) { return static_cast<double>(n) + 8; };
  cases.push_back({"linear_" + size, &ops::linear, {x, weight}, {}, count(in)});
  cases.push_back({"linear_bias_" + size, &ops::linear, {x, weight, real({out})}, {}, count(in), kBias});
  cases.push_back({"linear_grad_input_" + size, &ops::linear_grad_input, {dy, weight}, {}, count(out)});
  cases.push_back({"linear_grad_weight_" + size, &ops::linear_grad_weight, {dy, x}, {}, count(batch)});
}

}  // namespace

std::vector<OpCase> product_cases() {
  std::vector<OpCase> cases;
  add_convolution(cases, {.name = "3x3", .input = {4, 16, 14, 14}, .weight = {32, 16, 3, 3}});
  add_convolution(cases, {.name = "3x3_wide", .input = {3, 64, 8, 8}, .weight = {64, 64, 3, 3}});
  add_convolution(cases, {.name = "3x3_bias", .input = {2, 8, 9, 7}, .weight = {24, 8, 3, 3}, .bias = true});
  add_convolution(cases, {.name = "stride2", .input = {3, 16, 15, 13}, .weight = {32, 16, 3, 3}, .stride = {2, 2}});
  add_convolution(cases, {.name = "stride2_even", .input = {3, 16, 16, 16}, .weight = {32, 16, 3, 3}, .stride = {2, 2}});
  add_convolution(cases, {.name = "stem", .input = {4, 3, 32, 32}, .weight = {16, 3, 3, 3}});
  add_convolution(cases,
                  {.name = "stem_7x7", .input = {2, 3, 30, 30}, .weight = {64, 3, 7, 7}, .stride = {2, 2}, .padding = {3, 3}});
  add_convolution(cases, {.name = "1x1", .input = {3, 64, 7, 7}, .weight = {24, 64, 1, 1}, .padding = {0, 0}});
  add_convolution(cases,
                  {.name = "1x1_stride2", .input = {3, 32, 8, 8}, .weight = {64, 32, 1, 1}, .stride = {2, 2}, .padding = {0, 0}});
  add_convolution(cases, {.name = "odd_channels", .input = {3, 5, 6, 7}, .weight = {7, 5, 3, 3}, .bias = true});
  add_convolution(
      cases,
      {.name = "grouped", .input = {3, 10, 7, 6}, .weight = {38, 5, 3, 2}, .stride = {2, 1}, .dilation = {1, 2}, .groups = 2});
  add_convolution(cases, {.name = "depthwise", .input = {2, 12, 8, 8}, .weight = {12, 1, 3, 3}, .groups = 12});
  add_convolution(cases, {.name = "one_image", .input = {1, 32, 32, 32}, .weight = {32, 32, 3, 3}});
  add_convolution(cases, {.name = "dilated",
                          .input = {2, 12, 11, 9},
                          .weight = {20, 12, 3, 3},
                          .stride = {1, 2},
                          .padding = {2, 0},
                          .dilation = {2, 1}});
  add_convolution(cases, {.name = "dilated_wide",
                          .input = {2, 48, 11, 9},
                          .weight = {24, 48, 3, 3},
                          .stride = {1, 2},
                          .padding = {2, 1},
                          .dilation = {2, 1}});
  add_convolution(cases, {.name = "dilated_stride2",
                          .input = {2, 8, 9, 9},
                          .weight = {8, 8, 3, 3},
                          .stride = {2, 2},
                          .padding = {2, 2},
                          .dilation = {2, 2}});
  add_convolution(cases, {.name = "two_tiles_of_channels", .input = {4, 36, 12, 12}, .weight = {72, 36, 3, 3}});
  // So many pixels that a GPU cuts them into its largest tiles, with some left over.
  add_convolution(cases, {.name = "many_pixels_out", .input = {1, 8, 130, 131}, .weight = {64, 8, 1, 1}, .padding = {0, 0}});
  add_convolution(cases, {.name = "many_pixels_in", .input = {1, 68, 94, 93}, .weight = {12, 68, 1, 1}, .padding = {0, 0}});
  add_linear(cases, 35, 50, 19);
  add_linear(cases, 100, 128, 10);
  add_linear(cases, 64, 512, 256);
  add_linear(cases, 3, 1030, 67);  // a few rows at a time, and a rest
  add_linear(cases, 1, 7, 3);
  // A classifier's: deep enough that a library cuts the sum up, with scratch that does not begin on a multiple of 256 bytes.
  add_linear(cases, 6, 6272, 40);
  return cases;
}

}  // namespace snug::conformance
