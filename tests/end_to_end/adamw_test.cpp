// AdamW beside PyTorch's, and what is true of it under every method.
#include <cmath>

#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "backends/reference/reference.h"
#include "base/error.h"
#include "frontend/graph_builder.h"
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
  settings.set("decay_norms", std::int64_t{1});  // PyTorch decays every parameter of a list
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

// A linear classifier by arithmetic of its own: forward, backward, clipping and the update in double.
class LinearClassifier {
 public:
  static constexpr std::size_t kFeatures = 1000, kClasses = 5, kExamples = 6;
  static constexpr double kLearningRate = 0.01, kClipNorm = 7, kDecay = 0.1;
  static constexpr double kFirst = 0.9, kSecond = 0.99, kEpsilon = 1e-8;

  std::vector<double> weight = drawn(3000, kClasses*kFeatures, 0.05), bias = drawn(3001, kClasses, 0.5);
  int clipped = 0;

  static std::vector<double> features(std::uint64_t step) { return drawn(1000 + step, kExamples * kFeatures, 1); }
  static std::vector<std::int32_t> labels(std::uint64_t step) {
    std::vector<std::int32_t> labels;
    for (std::uint64_t i = 0; i < kExamples; ++i)
      labels.push_back(static_cast<std::int32_t>(uniform(2000 + step, i) * static_cast<double>(kClasses)));
    return labels;
  }

  // The loss before the step, which may decay the bias too.
  double step(std::uint64_t number, bool decays_bias) {
    const std::vector<double> x = features(number);
    const std::vector<std::int32_t> y = labels(number);
    std::vector<double> weight_gradient(weight.size()), bias_gradient(bias.size());
    double loss = 0;
    for (std::size_t n = 0; n < kExamples; ++n) {
      std::vector<double> logits = bias;
      for (std::size_t c = 0; c < kClasses; ++c) {
        for (std::size_t i = 0; i < kFeatures; ++i) logits[c] += weight[c * kFeatures + i] * x[n * kFeatures + i];
      }
      double sum = 0;
      for (const double logit : logits) sum += std::exp(logit);
      const auto label = static_cast<std::size_t>(y[n]);
      loss += (std::log(sum) - logits[label]) / kExamples;
      for (std::size_t c = 0; c < kClasses; ++c) {
        const double g = (std::exp(logits[c]) / sum - (c == label ? 1 : 0)) / kExamples;
        bias_gradient[c] += g;
        for (std::size_t i = 0; i < kFeatures; ++i) weight_gradient[c * kFeatures + i] += g * x[n * kFeatures + i];
      }
    }
    const double norm = std::hypot(length(weight_gradient), length(bias_gradient));
    const double factor = std::min(1.0, kClipNorm / (norm + 1e-6));
    clipped += factor < 1 ? 1 : 0;
    ++updates_;
    move(weight, weight_gradient, weight_moments_, factor, kDecay);
    move(bias, bias_gradient, bias_moments_, factor, decays_bias ? kDecay : 0);
    return loss;
  }

 private:
  struct Moments {
    std::vector<double> first, second;
  };

  static std::vector<double> drawn(std::uint64_t stream, std::size_t count, double size) {
    std::vector<double> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<float>(size * (2 * uniform(stream, i) - 1)));
    return values;
  }

  void move(std::vector<double>& w, const std::vector<double>& gradient, Moments& moments, double factor, double decay) const {
    moments.first.resize(w.size());
    moments.second.resize(w.size());
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double g = factor * gradient[i];
      double& m = moments.first[i];
      double& v = moments.second[i];
      m += (1 - kFirst) * (g - m);
      v += (1 - kSecond) * (g * g - v);
      const double mean = m / (1 - std::pow(kFirst, updates_)), square = v / (1 - std::pow(kSecond, updates_));
      w[i] -= kLearningRate * (decay * w[i] + mean / (std::sqrt(square) + kEpsilon));
    }
  }

  int updates_ = 0;
  Moments weight_moments_, bias_moments_;
};

struct Setting {
  DType dtype = DType::f32;
  bool decays_bias = false;
  std::int64_t moment_bits = 0;
};

template <typename T>
void expect_steps_by_hand(const Backend& backend, const Setting& setting, double tolerance) {
  using Classifier = LinearClassifier;
  frontend::GraphBuilder builder("classifier", Classifier::kExamples);
  builder.softmax_cross_entropy(builder.linear("head", builder.features({Classifier::kFeatures}), Classifier::kClasses));
  const CompileOptions options{.methods = {.precision = setting.dtype},
                               .update = {.rule = "adamw",
                                          .settings = {{"beta2", Classifier::kSecond},
                                                       {"weight_decay", Classifier::kDecay},
                                                       {"decay_norms", std::int64_t{setting.decays_bias}},
                                                       {"moment_bits", setting.moment_bits}},
                                          .clip_norm = Classifier::kClipNorm}};
  train::Session session(compile(std::move(builder).finish(), backend, options), backend, 0);
  session.set_learning_rate(Classifier::kLearningRate);
  session.set_clip_norm(Classifier::kClipNorm);
  Classifier by_hand;
  session.write_state("head.weight", by_hand.weight);
  session.write_state("head.bias", by_hand.bias);
  for (std::uint64_t step = 0; step < 20; ++step) {
    const std::vector<double> features = Classifier::features(step);
    const std::vector<T> x(features.begin(), features.end());
    const double loss = by_hand.step(step, setting.decays_bias);
    const std::vector<std::int32_t> labels = Classifier::labels(step);
    EXPECT_NEAR(session.train_step(support::Labeled(std::as_bytes(std::span(x)), labels, "features")).loss, loss, tolerance)
        << "step " << step + 1;
  }
  EXPECT_GT(by_hand.clipped, 3);
  EXPECT_LT(by_hand.clipped, 20);
  for (const auto& [name, expected] : {std::pair("head.weight", by_hand.weight), std::pair("head.bias", by_hand.bias)}) {
    std::vector<double> error = session.read_state(name);
    for (std::size_t i = 0; i < error.size(); ++i) error[i] -= expected[i];
    EXPECT_LT(length(error), tolerance * length(expected)) << name;
  }
}

TEST(Adamw, ClippedStepsAndGroupsWithoutDecayAreThoseOfALoopInDouble) {
  for (const bool decays_bias : {false, true}) {
    expect_steps_by_hand<double>(backends::reference_backend(2), {.dtype = DType::f64, .decays_bias = decays_bias}, 1e-10);
    expect_steps_by_hand<float>(backends::reference_backend(2), {.decays_bias = decays_bias}, 1e-5);
    expect_steps_by_hand<float>(backends::cpu_backend(2), {.decays_bias = decays_bias}, 1e-5);
  }
}

TEST(Adamw, MomentsInSixteenBitsStayNearThoseOfALoopInDouble) {
  for (const Backend& backend : {backends::reference_backend(2), backends::cpu_backend(2)})
    expect_steps_by_hand<float>(backend, {.moment_bits = 16}, 1e-3);
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
