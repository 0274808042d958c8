#include <limits>

#include <fmt/format.h>

#include "conformance/backend_conformance.h"
#include "ops/ops.h"
#include "ops/packing.h"

// Values in few bits and back. Codes must be the reference's to the bit: they are drawn and computed alike everywhere.

namespace snug::conformance {

namespace {

using Integers = std::vector<std::int64_t>;
using Kind = OperandSpec::Kind;

void add_both(std::vector<OpCase>& cases, const std::string& name, const Shape& shape, std::int64_t bits,
              bool row_major = false) {
  const OperandSpec draws{.kind = Kind::scalars, .scalars = {.seed = 9, .step = 3, .first_example = 5}};
  const OperandSpec x{.shape = shape, .low = -3, .high = 5, .row_major = row_major};
  const std::string suffix = fmt::format("_{}_bits_{}", bits, name);
  cases.push_back({.name = "pack" + suffix,
                   .op = &ops::pack,
                   .operands = {x, draws},
                   .attributes = {{"bits", bits}, {"key", std::int64_t{11}}},
                   .host_only = true});
  const OperandSpec codes{.kind = Kind::bytes, .shape = {ops::pack_bytes(shape.elements(), bits)}, .low = 0, .high = 256};
  const OperandSpec ranges{.kind = Kind::single, .shape = {ops::pack_groups(shape.elements()), 2}};
  cases.push_back({.name = "unpack" + suffix,
                   .op = &ops::unpack,
                   .operands = {codes, ranges},
                   .attributes = {{"bits", bits},
                                  {"dtype", static_cast<std::int64_t>(DType::f32)},
                                  {"channels_last", std::int64_t{shape.rank() == 4 && !row_major ? 1 : 0}},
                                  {"input_shape", Integers(shape.dims().begin(), shape.dims().end())}},
                   .host_only = true});
}

void add_rows(std::vector<OpCase>& cases, std::int64_t bits, std::int64_t rows_per_example) {
  cases.push_back({.name = fmt::format("pack_{}_bits_{}_rows_per_example", bits, rows_per_example),
                   .op = &ops::pack,
                   .operands = {{.shape = {6, 256}, .low = -3, .high = 5},
                                {.kind = Kind::scalars, .scalars = {.seed = 9, .step = 3, .first_example = 5}}},
                   .attributes = {{"bits", bits}, {"key", std::int64_t{11}}, {"rows_per_example", rows_per_example}},
                   .host_only = true});
}

}  // namespace

std::vector<OpCase> pack_cases() {
  std::vector<OpCase> cases;
  for (const std::int64_t bits : {2, 4, 8}) {
    add_both(cases, "one", {1}, bits);
    add_both(cases, "vector", {13}, bits);
    add_both(cases, "rows", {7, 11}, bits);
    add_both(cases, "one_group", {2, 128}, bits);
    add_both(cases, "images", {3, 5, 9, 7}, bits);
    add_both(cases, "row_major", {3, 5, 9, 7}, bits, true);
    add_both(cases, "many", {5, 16, 13, 11}, bits);  // several threads, an incomplete group
    add_rows(cases, bits, 2);
    add_rows(cases, bits, 0);
  }
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const OperandSpec draws{.kind = Kind::scalars, .scalars = {.seed = 9}};
  const auto add = [&](const std::string& name, double low, double high) {
    cases.push_back({.name = "pack_" + name,
                     .op = &ops::pack,
                     .operands = {{.shape = {3, 100}, .low = low, .high = high}, draws},
                     .attributes = {{"bits", std::int64_t{4}}, {"key", std::int64_t{0}}},
                     .host_only = true});
  };
  add("all_the_same", 2, 2);
  add("not_a_number", kNaN, kNaN);
  add("tiny", 0, 1e-40);
  add("wider_than_a_float", -3.3e38, 3.3e38);
  // A single number that is not finite spoils its group alone: in a vector's lane, or among the last few of a group of 263 - 256.
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto add_single = [&](const std::string& name, double value, std::size_t at, std::int64_t elements) {
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < elements; ++i) numbers.push_back(0.25 * static_cast<double>(i % 37) - 3);
    numbers[at] = value;
    cases.push_back({.name = "pack_" + name,
                     .op = &ops::pack,
                     .operands = {{.shape = {elements}, .numbers = numbers}, draws},
                     .attributes = {{"bits", std::int64_t{4}}, {"key", std::int64_t{0}}},
                     .host_only = true});
  };
  for (const auto& [name, value] :
       {std::pair<std::string, double>{"not_a_number", kNaN}, {"infinity", kInfinity}, {"negative_infinity", -kInfinity}}) {
    add_single("a_single_" + name + "_first", value, 0, 263);
    add_single("a_single_" + name + "_in_a_lane", value, 133, 263);
    add_single("a_single_" + name + "_in_the_tail", value, 261, 263);
    add_single("a_single_" + name + "_behind_vectors", value, 300, 301);  // 45 elements: whole vectors, then this one
  }
  return cases;
}

}  // namespace snug::conformance
