// AdamW beside PyTorch's, and what is true of it under every method.
#include <cmath>

#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "backends/reference/reference.h"
#include "base/error.h"
#include "frontend/zoo.h"
#include "golden.h"
#include "plan/compile.h"
#include "support/labeled.h"
#include "support/state_bytes.h"

namespace snug {
namespace {

double length(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

ops::UpdateOptions adamw(const Json& setting) {
  Attributes settings;
  for (const char* name : {"beta1", "beta2", "epsilon", "weight_decay"}) settings.set(name, setting[name].get<double>());
  return {.rule = "adamw", .settings = settings};
}

// Losses and weights of twenty steps.
template <typename T>
void expect_pytorchs_steps(const std::string& run, DType dtype, const Backend& backend, double tolerance) {
  const Json figures = golden("small_cnn_adamw.json");
  const Json& setting = figures["setting"];
  const Program graph = frontend::build_zoo_model("small-cnn", {.batch = setting["batch"], .staged_as_bytes = false});
  train::Session session(compile(graph, backend, {.methods = {.precision = dtype}, .update = adamw(setting)}), backend, 0);
  session.set_learning_rate(setting["lr"]);
  write_weights(session, figures["parameters"]);
  for (std::uint64_t step = 0; step < setting["steps"]; ++step) {
    const double loss = figures[run]["losses"][step];
    EXPECT_NEAR(train_step<T>(session, step), loss, tolerance * loss) << "step " << step + 1;
  }
  // Where a gradient is nearly nothing, its direction is all that counts: the shift of a batch norm has few digits in fp32.
  for (const auto& [name, figure] : figures[run]["final_l2"].items()) {
    const double l2 = figure;
    EXPECT_NEAR(length(session.read_state(name)), l2, tolerance * std::max(1.0, l2)) << name;
  }
  EXPECT_EQ(session.read_state("updates"), (std::vector<double>{20}));
}

TEST(Adamw, ReferenceFollowsPyTorchInDoublePrecision) {
  expect_pytorchs_steps<double>("fp64", DType::f64, backends::reference_backend(2), 1e-11);
}

TEST(Adamw, ReferenceFollowsPyTorchInSinglePrecision) {
  expect_pytorchs_steps<float>("fp32", DType::f32, backends::reference_backend(2), 1e-5);
}

TEST(Adamw, CpuBackendFollowsPyTorchInSinglePrecision) {
  expect_pytorchs_steps<float>("fp32", DType::f32, backends::cpu_backend(2), 1e-5);
}

train::Session session_of(CompileOptions options, const Backend& backend) {
  options.update = {.rule = "adamw", .clip_norm = options.update.clip_norm};
  const Program graph = frontend::build_zoo_model("small-cnn", {.batch = 16, .staged_as_bytes = false});
  return train::Session(compile(graph, backend, options), backend, 5);
}

TEST(Adamw, HasTheSameBitsWhateverIsMadeAgainOrUpdatedInBackward) {
  const Backend backend = backends::cpu_backend(2);
  const auto trained = [&](const CompileOptions& options) {
    train::Session session = session_of(options, backend);
    session.set_learning_rate(1e-3);
    for (std::uint64_t step = 0; step < 4; ++step) train_step<float>(session, step);
    return support::state_bytes(session, [](Role role) { return role == Role::parameter || role == Role::optimizer; });
  };
  const auto plain = trained({});
  EXPECT_EQ(trained({.methods = {.checkpoint = parse_checkpoint_strategy("sqrt")}}), plain);
  EXPECT_EQ(trained({.methods = {.fuse_update = true}}), plain);
  EXPECT_EQ(trained({.passes = {.disabled = {"share_bytes"}}}), plain);
}

TEST(Adamw, ASkippedStepDoesNotCount) {
  const Backend backend = backends::cpu_backend(2);
  train::Session session = session_of({.update = {.clip_norm = 1}}, backend);
  session.set_clip_norm(1);
  session.set_learning_rate(1e-3);
  train_step<float>(session, 0);
  std::vector<float> x = inputs_of_step<float>(1, 16);
  x[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(session.train_step(support::Labeled(std::as_bytes(std::span(x)), labels_of_step(1, 16), "features")).skipped);
  EXPECT_EQ(session.read_state("updates"), (std::vector<double>{1}));
  train_step<float>(session, 2);
  EXPECT_EQ(session.read_state("updates"), (std::vector<double>{2}));
  EXPECT_EQ(session.step(), 3U);
}

TEST(Adamw, CannotDropItsGradients) {
  EXPECT_THROW(session_of({.methods = {.drop_gradients = true}}, backends::cpu_backend(2)), UserError);
}

}  // namespace
}  // namespace snug
