// Losses against PyTorch's on the same weights and batches (tests/golden).
#include <cmath>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "backends/cpu/cpu.h"
#include "backends/reference/reference.h"
#include "frontend/zoo.h"
#include "plan/compile.h"
#include "train/session.h"

namespace snug {

namespace {

using Json = nlohmann::json;

Json golden(const std::string& name) {
  std::ifstream file(std::string(SNUG_TEST_SOURCE_DIR) + "/golden/" + name);
  return Json::parse(file);
}

// The generator of tests/golden/README.md.
double uniform(std::uint64_t stream, std::uint64_t i) {
  std::uint64_t z = (stream << 32U) + i + 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return static_cast<double>((z ^ (z >> 31U)) >> 11U) * 0x1p-53;
}

constexpr std::int64_t kSize = 32;

// Channels last, from values drawn in N,C,H,W order.
template <typename T>
std::vector<T> inputs_of_step(std::uint64_t step, std::int64_t batch) {
  std::vector<T> x(static_cast<std::size_t>(batch * 3 * kSize * kSize));
  std::uint64_t i = 0;
  for (std::int64_t n = 0; n < batch; ++n) {
    for (std::int64_t c = 0; c < 3; ++c) {
      for (std::int64_t pixel = 0; pixel < kSize * kSize; ++pixel) {
        x[static_cast<std::size_t>((n * kSize * kSize + pixel) * 3 + c)] = static_cast<T>(2.0 * uniform(1000 + step, i++) - 1.0);
      }
    }
  }
  return x;
}

std::vector<std::int32_t> labels_of_step(std::uint64_t step, std::int64_t batch) {
  std::vector<std::int32_t> labels;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(batch); ++i)
    labels.push_back(static_cast<std::int32_t>(uniform(2000 + step, i) * 10.0));
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

// A model of the zoo with the figures' weights.
train::Session session_for(const Json& figures, const std::string& model, DType dtype, const Backend& backend) {
  const std::int64_t batch = figures["setting"]["batch"];
  train::Session session(
      compile(frontend::build_zoo_model(model, {.batch = batch, .dtype = dtype, .staged_as_bytes = false}), backend), backend, 0);
  session.set_learning_rate(figures["setting"]["lr"]);
  write_weights(session, figures["parameters"]);
  return session;
}

template <typename T>
double train_step(train::Session& session, std::uint64_t step) {
  const std::vector<T> x = inputs_of_step<T>(step, session.plan().program.batch);
  return session.train_step({std::as_bytes(std::span(x)), labels_of_step(step, session.plan().program.batch)}).loss;
}

TEST(GoldenWrn, DoublePrecisionLossesStayWithinTheSpreadOfPyTorch) {
  const Json figures = golden("wrn_10_1_fp64.json");
  train::Session session = session_for(figures, "wrn-10-1", DType::f64, backends::reference_backend(2));
  for (std::uint64_t step = 0; step < 20; ++step) {
    const double loss = train_step<double>(session, step);
    const double torch = figures["losses"][step];
    const double spread = figures["spread_running_max"][step];
    EXPECT_LE(std::abs(loss - torch), spread) << "step " << step + 1 << ": " << loss << " and PyTorch " << torch;
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

TEST(GoldenWrn, CpuBackendFollowsPyTorchInSinglePrecision) {
  const Json figures = golden("wrn_28_2_fp32.json");
  train::Session session = session_for(figures, "wrn-28-2", DType::f32, backends::cpu_backend(2));
  for (std::uint64_t step = 0; step < 20; ++step) {
    const double torch = figures["losses"][step];
    EXPECT_NEAR(train_step<float>(session, step), torch, 1e-4 * torch) << "step " << step + 1;
  }
}

}  // namespace

}  // namespace snug
