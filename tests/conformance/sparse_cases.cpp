#include <fmt/format.h>

#include "backends/sparse_store.h"
#include "conformance/backend_conformance.h"
#include "ops/conv2d.h"
#include "ops/ops.h"
#include "ops/sparse/sparse.h"

// Convolutions with weights of a sparse store, what draws and what rewires it. Every case has a store of three tensors and works
// on the middle one, so that neither its rows nor its values begin at 0.

namespace snug::conformance {

namespace {

using Integers = std::vector<std::int64_t>;
using Kind = OperandSpec::Kind;

// A store, its pattern drawn.
struct Store {
  ops::SparseGrid grid;
  Integers nonzeros;
  std::int64_t all = 0;
  std::vector<std::uint8_t> columns;
  std::vector<std::int32_t> rows;

  Store(Integers tensor_rows, Integers tensor_columns, double density)
      : grid{.rows = std::move(tensor_rows), .columns = std::move(tensor_columns), .bits = 0} {
    grid.bits = ops::sparse_index_bits(*std::max_element(grid.columns.begin(), grid.columns.end()));
    for (std::size_t t = 0; t < grid.rows.size(); ++t) {
      nonzeros.push_back(static_cast<std::int64_t>(density * static_cast<double>(grid.elements(t))));
      all += nonzeros.back();
    }
    columns.resize(static_cast<std::size_t>(ops::sparse_columns_type(all, grid.bits).bytes().count()));
    rows.resize(static_cast<std::size_t>(grid.all_rows() + 1));
    backends::draw_pattern(grid, nonzeros, 5, columns, rows.data());
  }

  OperandSpec values() const { return {.shape = {all}}; }
  OperandSpec columns_spec() const {
    return {
        .kind = Kind::bytes, .shape = {static_cast<std::int64_t>(columns.size())}, .numbers = {columns.begin(), columns.end()}};
  }
  OperandSpec rows_spec() const {
    return {.kind = Kind::labels, .shape = {static_cast<std::int64_t>(rows.size())}, .numbers = {rows.begin(), rows.end()}};
  }
  Attributes attributes() const {
    return {{"tensor_rows", grid.rows}, {"tensor_columns", grid.columns}, {"bits", std::int64_t{grid.bits}}};
  }
};

struct Convolution {
  std::string name;
  Shape input, weight;
  double density = 0.3;
  Integers stride{1, 1}, padding{1, 1}, dilation{1, 1};
  bool bias = false;
};

void add_convolution(std::vector<OpCase>& cases, const Convolution& c) {
  const Store store({7, c.weight[0], 5}, {11, c.weight.elements() / c.weight[0], 50}, c.density);
  Attributes attributes{{"stride", c.stride}, {"padding", c.padding}, {"dilation", c.dilation}, {"groups", std::int64_t{1}}};
  ops::set_slot(attributes, {.first_row = 7, .shape = c.weight, .bits = store.grid.bits});
  const auto g = ops::Conv2dGeometry::from(c.input, c.weight, attributes);
  const OperandSpec x{.shape = c.input}, y{.shape = {g.batch, g.out_channels, g.out_height, g.out_width}};
  Attributes for_input = attributes, for_weight = attributes;
  for_input.set("input_shape", Integers(c.input.dims().begin(), c.input.dims().end()));
  for_weight.set("nonzeros", store.all);
  const auto terms = [&](std::int64_t channels) {
    return static_cast<double>(channels * g.kernel_height * g.kernel_width) * c.density + 8;
  };
  std::vector<OperandSpec> forward{x, store.values(), store.columns_spec(), store.rows_spec()};
  if (c.bias) forward.push_back({.shape = {g.out_channels}});
  cases.push_back(
      {"sparse_conv2d_" + c.name, &ops::sparse_conv2d, forward, attributes, terms(g.in_channels), c.bias ? 1.0 : 0.0});
  cases.push_back({"sparse_conv2d_grad_input_" + c.name,
                   &ops::sparse_conv2d_grad_input,
                   {y, store.values(), store.columns_spec(), store.rows_spec()},
                   for_input,
                   terms(g.out_channels)});
  cases.push_back({"sparse_conv2d_grad_weight_" + c.name,
                   &ops::sparse_conv2d_grad_weight,
                   {y, x, store.columns_spec(), store.rows_spec()},
                   for_weight,
                   static_cast<double>(g.batch * g.out_height * g.out_width) + 8});
}

// `size` in the names: the ops of a store of these tensors, the middle one's values drawn.
void add_store_ops(std::vector<OpCase>& cases, const std::string& size, const Store& store, const Shape& middle) {
  const OperandSpec scalars{.kind = Kind::scalars, .scalars = {.seed = 9, .step = 31}};
  Attributes pattern = store.attributes();
  pattern.set("tensor_nonzeros", store.nonzeros);
  cases.push_back(
      {"init_sparse_pattern" + size, &ops::init_sparse_pattern, {store.columns_spec(), store.rows_spec(), scalars}, pattern});
  for (const std::int64_t uniform : {0, 1}) {
    Attributes values{{"spread", 0.25}, {"uniform", uniform}, {"key", std::int64_t{3}}};
    ops::set_slot(values, {.first_row = store.grid.rows[0], .shape = middle, .bits = store.grid.bits});
    cases.push_back({fmt::format("init_sparse_{}{}", uniform, size),
                     &ops::init_sparse,
                     {store.values(), store.columns_spec(), store.rows_spec(), scalars},
                     values});
  }
  const OperandSpec threshold{.kind = Kind::wide, .shape = {1}, .low = 0.2, .high = 0.2};
  for (const std::int64_t per_tensor : {0, 1}) {
    Attributes rewire = store.attributes();
    rewire.set("target", store.all / 6);
    rewire.set("per_tensor", per_tensor);
    std::vector<OperandSpec> operands{store.values(), store.columns_spec(), store.rows_spec(), threshold, scalars};
    cases.push_back({fmt::format("rewire_{}{}", per_tensor, size), &ops::rewire, operands, rewire});
    operands.push_back(store.values());
    cases.push_back({fmt::format("rewire_momentum_{}{}", per_tensor, size), &ops::rewire, operands, rewire});
  }
}

}  // namespace

std::vector<OpCase> sparse_cases() {
  std::vector<OpCase> cases;
  add_convolution(cases, {.name = "3x3", .input = {3, 16, 14, 14}, .weight = {32, 16, 3, 3}});
  add_convolution(cases, {.name = "3x3_wide", .input = {2, 64, 8, 8}, .weight = {64, 64, 3, 3}, .density = 0.1});
  add_convolution(cases, {.name = "3x3_bias", .input = {2, 8, 9, 7}, .weight = {24, 8, 3, 3}, .bias = true});
  add_convolution(cases, {.name = "full", .input = {2, 16, 8, 8}, .weight = {16, 16, 3, 3}, .density = 1});
  add_convolution(cases, {.name = "nearly_empty", .input = {2, 16, 8, 8}, .weight = {16, 16, 3, 3}, .density = 0.02});
  add_convolution(cases, {.name = "stride2", .input = {3, 16, 15, 13}, .weight = {32, 16, 3, 3}, .stride = {2, 2}});
  add_convolution(cases, {.name = "stride2_even", .input = {3, 16, 16, 16}, .weight = {32, 16, 3, 3}, .stride = {2, 2}});
  add_convolution(cases, {.name = "1x1", .input = {3, 64, 7, 7}, .weight = {24, 64, 1, 1}, .padding = {0, 0}});
  add_convolution(cases,
                  {.name = "1x1_stride2", .input = {3, 32, 8, 8}, .weight = {64, 32, 1, 1}, .stride = {2, 2}, .padding = {0, 0}});
  add_convolution(cases, {.name = "odd_channels", .input = {3, 5, 6, 7}, .weight = {7, 5, 3, 3}, .bias = true});
  add_convolution(cases, {.name = "dilated",
                          .input = {2, 12, 11, 9},
                          .weight = {20, 12, 3, 3},
                          .stride = {1, 2},
                          .padding = {2, 0},
                          .dilation = {2, 1}});
  add_convolution(cases, {.name = "dilated_wide",
                          .input = {3, 48, 11, 9},
                          .weight = {8, 48, 3, 3},
                          .stride = {1, 2},
                          .padding = {2, 0},
                          .dilation = {2, 1}});
  add_convolution(cases, {.name = "padding_wider_than_the_image",
                          .input = {2, 16, 2, 2},
                          .weight = {16, 16, 7, 7},
                          .density = 0.5,
                          .padding = {3, 3}});
  add_convolution(cases, {.name = "one_image", .input = {1, 32, 32, 32}, .weight = {32, 32, 3, 3}});
  add_store_ops(cases, "", Store({16, 8, 5}, {27, 72, 4}, 0.4), {8, 8, 3, 3});
  add_store_ops(cases, "_large", Store({70, 33, 5}, {300, 144, 50}, 0.4), {33, 16, 3, 3});
  add_store_ops(cases, "_full", Store({40, 33, 5}, {100, 144, 50}, 0.99), {33, 16, 3, 3});
  return cases;
}

std::vector<OpCase> sparse_wrn_cases(double density) {
  struct Layer {
    std::int64_t in, out, size, stride;
  };
  std::vector<OpCase> cases;
  for (const Layer& layer : {Layer{16, 32, 12, 1}, Layer{32, 32, 34, 1}, Layer{32, 64, 16, 2}, Layer{64, 64, 16, 1},
                             Layer{64, 128, 16, 2}, Layer{128, 128, 8, 1}}) {
    add_convolution(cases, {.name = fmt::format("{}_{}_{}_{}", layer.in, layer.out, layer.stride, density),
                            .input = {2, layer.in, layer.size, layer.size},
                            .weight = {layer.out, layer.in, 3, 3},
                            .density = density,
                            .stride = {layer.stride, layer.stride}});
  }
  return cases;
}

}  // namespace snug::conformance
