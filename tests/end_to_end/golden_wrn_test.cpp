// The reference backend in double against PyTorch in double: WRN-10-1, 20 steps of SGD at learning rate 0.1 (tests/golden).
#include <cmath>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "backends/reference/reference.h"
#include "frontend/zoo.h"
#include "plan/compile.h"
#include "train/session.h"

namespace snug {

namespace {

using Json = nlohmann::json;

Json golden() {
  std::ifstream file(std::string(SNUG_TEST_SOURCE_DIR) + "/golden/wrn_10_1_fp64.json");
  return Json::parse(file);
}

// The generator of tests/golden/README.md.
double uniform(std::uint64_t stream, std::uint64_t i) {
  std::uint64_t z = (stream << 32U) + i + 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return static_cast<double>((z ^ (z >> 31U)) >> 11U) * 0x1p-53;
}

constexpr std::int64_t kBatch = 16;
constexpr std::int64_t kSize = 32;

// Channels last, from values drawn in N,C,H,W order.
std::vector<double> inputs_of_step(std::uint64_t step) {
  std::vector<double> x(kBatch * 3 * kSize * kSize);
  std::uint64_t i = 0;
  for (std::int64_t n = 0; n < kBatch; ++n) {
    for (std::int64_t c = 0; c < 3; ++c) {
      for (std::int64_t pixel = 0; pixel < kSize * kSize; ++pixel) {
        x[static_cast<std::size_t>((n * kSize * kSize + pixel) * 3 + c)] = 2.0 * uniform(1000 + step, i++) - 1.0;
      }
    }
  }
  return x;
}

std::vector<std::int32_t> labels_of_step(std::uint64_t step) {
  std::vector<std::int32_t> labels;
  for (std::uint64_t i = 0; i < kBatch; ++i) labels.push_back(static_cast<std::int32_t>(uniform(2000 + step, i) * 10.0));
  return labels;
}

void write_weights(train::Session& session, const Json& parameters) {
  for (std::uint64_t p = 0; p < parameters.size(); ++p) {
    const std::string name = parameters[p][0];
    std::size_t elements = 1;
    for (const std::size_t dim : parameters[p][1]) elements *= dim;
    std::vector<double> values(elements, name.ends_with(".weight") ? 1.0 : 0.0);
    if (parameters[p][1].size() > 1) {
      const double fan_in = static_cast<double>(elements) / parameters[p][1][0].get<double>();
      for (std::uint64_t i = 0; i < elements; ++i) values[i] = (2.0 * uniform(p, i) - 1.0) * std::sqrt(6.0 / fan_in);
    }
    session.write_state(name, values);
  }
}

TEST(GoldenWrn, DoublePrecisionLossesStayWithinTheSpreadOfPyTorch) {
  const Json figures = golden();
  const Backend backend = backends::reference_backend(2);
  train::Session session(
      compile(frontend::build_zoo_model("wrn-10-1", {.batch = kBatch, .dtype = DType::f64, .staged_as_bytes = false}), backend),
      backend, 0);
  session.set_learning_rate(0.1);
  write_weights(session, figures["parameters"]);
  for (std::uint64_t step = 0; step < 20; ++step) {
    const std::vector<double> x = inputs_of_step(step);
    const std::vector<std::int32_t> labels = labels_of_step(step);
    const double loss = session.train_step({std::as_bytes(std::span(x)), labels}).loss;
    const double torch = figures["losses"][step];
    const double spread = figures["spread_running_max"][step];
    EXPECT_LE(std::abs(loss - torch), spread) << "step " << step + 1 << ": " << loss << " and PyTorch " << torch;
    RecordProperty("step_" + std::to_string(step + 1), std::to_string(std::abs(loss - torch) / spread));
  }
  // What the losses cannot see: running statistics, and the weights themselves.
  const auto sum = [&](const std::string& name) {
    double total = 0;
    for (const double value : session.read_state(name)) total += value;
    return total;
  };
  const double mean_sum = figures["final_head_bn"]["running_mean_sum"];
  const double var_sum = figures["final_head_bn"]["running_var_sum"];
  EXPECT_NEAR(sum("head.bn.running_mean"), mean_sum, 1e-12 * std::abs(mean_sum));
  EXPECT_NEAR(sum("head.bn.running_var"), var_sum, 1e-12 * std::abs(var_sum));
  for (const auto& [name, l2] : figures["final_l2"].items()) {
    double squares = 0;
    for (const double value : session.read_state(name)) squares += value * value;
    EXPECT_NEAR(std::sqrt(squares), l2.get<double>(), 1e-12 * l2.get<double>()) << name;
  }
}

}  // namespace

}  // namespace snug
