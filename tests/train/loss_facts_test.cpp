// A run asks its loss which metric tells better weights from worse ones, and in which direction: here a loss of the test's own,
// lower is better, with nothing to count beside it and no labels.
#include <atomic>
#include <cstring>

#include <gtest/gtest.h>

#include "backends/reference/reference.h"
#include "frontend/graph_builder.h"
#include "ir/scalars.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "plan/compile.h"
#include "support/files.h"
#include "train/loop.h"

namespace snug::train {

using support::bytes_of;
using support::TemporaryFolder;

namespace {

constexpr std::int64_t kWidth = 4;
constexpr std::int64_t kMicrobatch = 2;

// mean_of_squares(x [N,D], scalars) -> Metrics: the mean over the examples of the sum of squares.
std::vector<Type> infer_loss(const OpCall& call) {
  ops::require_inputs(call, 2);
  return {ops::metrics_type()};
}
std::vector<Type> infer_gradient(const OpCall& call) {
  ops::require_inputs(call, 2);
  return {call.inputs[0]};
}
extern const OpDef mean_of_squares_grad;
void build_gradient(GradientContext& context) {
  context.set_gradient(0, context.emit(mean_of_squares_grad, {context.input(0), context.input(1)}));
}
constexpr std::array<GradientRecipe, 1> kRecipes{{{.name = "input", .keeps_inputs = 0b11, .build = build_gradient}}};
constexpr LossFacts kFacts{.metrics = {"distance", {}}, .ranks_by = 0, .higher_is_better = false, .unit = "points"};
constinit const OpDef mean_of_squares{.name = "mean_of_squares", .infer = infer_loss, .gradients = kRecipes, .loss = &kFacts};
constinit const OpDef mean_of_squares_grad{.name = "mean_of_squares_grad", .infer = infer_gradient};

class Squares : public BoundKernel {
 public:
  explicit Squares(const KernelArguments& arguments)
      : x_(reinterpret_cast<const float*>(arguments.inputs[0].data)),
        scalars_(reinterpret_cast<const Scalars*>(arguments.inputs[1].data)),
        out_(arguments.outputs[0]) {}

 protected:
  std::int64_t valid_elements() const { return scalars_->valid_examples * kWidth; }

  const float* x_;
  const Scalars* scalars_;
  Operand out_;
};

class Forward : public Squares {
 public:
  using Squares::Squares;
  void run() override {
    Metrics metrics{.weight = static_cast<double>(scalars_->valid_examples)};
    for (std::int64_t i = 0; i < valid_elements(); ++i) metrics.loss += double{x_[i]} * x_[i] / scalars_->total_weight;
    std::memcpy(out_.data, &metrics, sizeof metrics);
  }
};

class Backward : public Squares {
 public:
  using Squares::Squares;
  void run() override {
    auto* gradient = reinterpret_cast<float*>(out_.data);
    for (std::int64_t i = 0; i < out_.type.elements(); ++i)
      gradient[i] = i < valid_elements() ? static_cast<float>(2 * x_[i] / scalars_->total_weight) : 0.0F;
  }
};

KernelMatch accept(const KernelQuery& /*query*/) { return Accept{}; }
template <typename Kernel>
std::unique_ptr<BoundKernel> bind(const KernelArguments& arguments) {
  return std::make_unique<Kernel>(arguments);
}
constexpr KernelDef kForward{.name = "test_mean_of_squares", .op = "mean_of_squares", .match = accept, .bind = bind<Forward>};
constexpr KernelDef kBackward{
    .name = "test_mean_of_squares_grad", .op = "mean_of_squares_grad", .match = accept, .bind = bind<Backward>};

Session point_session() {
  Backend backend = backends::reference_backend(1);
  backend.kernels.push_back(&kForward);
  backend.kernels.push_back(&kBackward);
  frontend::GraphBuilder b("points", kMicrobatch);
  const ValueId x = b.linear("layer", b.features({kWidth}), kWidth);
  b.loss("loss", mean_of_squares, {x, b.scalars()});
  return {compile(std::move(b).finish(), backend, {.batch = 2 * kMicrobatch}), backend, 3};
}

// Points without labels, all of them the model's input "features".
class Points : public data::Dataset {
 public:
  Points() {
    description_.name = "points";
    description_.train_examples = 8;
    description_.test_examples = 3;
  }
  const data::Description& description() const override { return description_; }
  std::vector<data::Input> inputs() const override {
    return {{.name = "features", .example_bytes = kWidth * sizeof(float), .content = data::Input::Content::numbers}};
  }
  void read(data::Split /*split*/, std::int64_t index, std::span<const std::span<std::byte>> inputs) const override {
    for (std::int64_t i = 0; i < kWidth; ++i) {
      const auto value = static_cast<float>((index * 7 + i * 3) % 5) - 2.0F;
      std::memcpy(inputs[0].data() + static_cast<std::size_t>(i) * sizeof value, &value, sizeof value);
    }
  }

 private:
  data::Description description_;
};

struct Evaluations : LoopListener {
  std::vector<std::pair<double, bool>> made;
  void on_step(const StepReport& /*report*/) override {}
  void on_evaluation(const Evaluation& evaluation, bool best_so_far) override { made.emplace_back(evaluation.loss, best_so_far); }
  void on_snapshot(std::uint64_t /*step*/, const std::filesystem::path& /*path*/) override {}
};

struct Trained {
  LoopResult result;
  Evaluations evaluations;
};

Trained train(const TemporaryFolder& folder, double learning_rate, std::uint64_t steps) {
  Session session = point_session();
  RunFolder run =
      RunFolder::create(folder / "run", settings::Recipe{.model = "points", .steps = static_cast<std::int64_t>(steps)});
  LoopSettings settings{.total_steps = steps, .eval_every = 1, .snapshot_every = 1};
  settings.schedule.base = learning_rate;
  settings.schedule.total_steps = steps;
  Trained trained;
  const std::atomic<bool> stop = false;
  trained.result = run_loop(session, Points(), settings, {}, run, trained.evaluations, stop);
  return trained;
}

TEST(LossFacts, ALossThatFallsIsBestEachTimeWhereLowerIsBetter) {
  const TemporaryFolder folder;
  const Trained trained = train(folder, 0.002, 4);
  ASSERT_EQ(trained.evaluations.made.size(), 4U);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_LT(trained.evaluations.made[i].first, trained.evaluations.made[i - 1].first);
  for (const auto& [loss, best] : trained.evaluations.made) EXPECT_TRUE(best) << loss;
  EXPECT_EQ(trained.result.best_metric, trained.evaluations.made.back().first);
}

TEST(LossFacts, ALossThatRisesIsBestOnlyAtFirst) {
  const TemporaryFolder folder;
  const Trained trained = train(folder, 1.0, 3);
  ASSERT_EQ(trained.evaluations.made.size(), 3U);
  EXPECT_GT(trained.evaluations.made[2].first, trained.evaluations.made[0].first);
  EXPECT_TRUE(trained.evaluations.made[0].second);
  EXPECT_FALSE(trained.evaluations.made[1].second);
  EXPECT_FALSE(trained.evaluations.made[2].second);
  EXPECT_EQ(trained.result.best_metric, trained.evaluations.made[0].first);
}

TEST(LossFacts, NameTheFieldsOfARun) {
  const TemporaryFolder folder;
  train(folder, 0.002, 4);
  const std::string metrics = bytes_of(folder / "run" / "metrics.jsonl");
  for (const char* field : {"\"distance\":", "\"test_distance\":", "\"points_per_second\":"})
    EXPECT_NE(metrics.find(field), std::string::npos) << field << " in " << metrics;
  for (const char* field : {"accuracy", "images", "\"loss\""}) EXPECT_EQ(metrics.find(field), std::string::npos) << field;
}

TEST(LossFacts, SpeedIsCountedInRowsOfTheLoss) {
  frontend::GraphBuilder b("rows", 2);
  b.softmax_cross_entropy(b.linear("head", b.reshape("rows", b.features({3, 5}), {6, 5}), 4));
  const Throughput throughput = throughput_of(compile(std::move(b).finish(), backends::reference_backend(1)).program);
  EXPECT_EQ(throughput.field(), "images_per_second");
  EXPECT_EQ(throughput.rate(10), 30);
}

}  // namespace

}  // namespace snug::train
