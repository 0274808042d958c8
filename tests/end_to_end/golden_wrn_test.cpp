// Losses against PyTorch's on the same weights and batches (tests/golden).
#include <cmath>

#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "backends/reference/reference.h"
#include "end_to_end/golden.h"
#include "frontend/zoo.h"
#include "plan/compile.h"
#include "train/session.h"

namespace snug {

namespace {

// A model of the zoo with the figures' weights.
train::Session session_for(const Json& figures, const std::string& model, DType dtype, const Backend& backend) {
  const std::int64_t batch = figures["setting"]["batch"];
  train::Session session(compile(frontend::build_zoo_model(model, {.batch = batch, .staged_as_bytes = false}), backend,
                                 {.methods = {.precision = dtype}}),
                         backend, 0);
  session.set_learning_rate(figures["setting"]["lr"]);
  write_weights(session, figures["parameters"]);
  return session;
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
