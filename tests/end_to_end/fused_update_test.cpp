// The update inside backward: not a bit of the training changes, the gradients' bytes are gone, and a step whose loss is not
// finite leaves the weights as they were.
#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "backends/reference/reference.h"
#include "base/philox.h"
#include "frontend/graph_builder.h"
#include "frontend/zoo.h"
#include "io/plan_file.h"
#include "plan/compile.h"
#include "support/labeled.h"
#include "support/state_bytes.h"
#include "support/temporary_folder.h"
#include "train/session.h"
#include "train/snapshot.h"
#include "train/weights.h"

namespace snug {

namespace {

constexpr std::int64_t kBatch = 4;
constexpr std::int64_t kSize = 16;

// Two layers with one weight, a bias, a dropout: what reads a weight twice and draws by the step.
Program tied() {
  frontend::GraphBuilder b("tied", kBatch);
  ValueId x = b.images({.height = kSize, .width = kSize});
  x = b.relu("relu1", b.conv2d("conv1", x, {.out_channels = 8, .padding = 1, .bias = true}));
  x = b.relu("relu2", b.conv2d("conv2", x, {.out_channels = 8, .padding = 1}));
  x = b.dropout("dropout", b.relu("relu3", b.conv2d("conv3", x, {.out_channels = 8, .padding = 1})), 0.2);
  b.softmax_cross_entropy(b.linear("fc", b.global_avg_pool("pool", x), 10));
  Program graph = std::move(b).finish();
  const auto weight_of = [&](const std::string& layer) -> ValueId& {
    for (Node& node : graph.section(SectionKind::forward).nodes) {
      if (node.layer == layer && node.op->name == "conv2d") return node.inputs[1];
    }
    throw std::runtime_error("no layer " + layer);
  };
  weight_of("conv3") = weight_of("conv2");
  return graph;
}

struct Setting {
  std::string model;
  std::string strategy = "none";
  ops::UpdateOptions update = {};
  bool cpu = true;
};

Backend backend_of(const Setting& setting) { return setting.cpu ? backends::cpu_backend(2) : backends::reference_backend(2); }

train::Session session_of(const Setting& setting, bool fused, Bytes red_zone = Bytes(0)) {
  const Backend backend = backend_of(setting);
  CompileOptions options{.batch = kBatch,
                         .methods = {.checkpoint = parse_checkpoint_strategy(setting.strategy)},
                         .update = setting.update,
                         .red_zone = red_zone};
  if (fused) options.methods.fuse_update = true;
  const Program graph =
      setting.model == "tied" ? tied() : frontend::build_zoo_model(setting.model, {.batch = kBatch, .image_size = kSize});
  train::Session session(compile(graph, backend, options), backend, 5);
  session.set_learning_rate(0.05);
  return session;
}

// One step on data that depend on the step alone; every third batch is short.
train::Result step(train::Session& session, std::int32_t first_label = 0) {
  const std::int64_t examples = session.step() % 3 == 2 ? kBatch - 1 : kBatch;
  std::vector<std::byte> images;
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < examples * kSize * kSize * 3; ++i)
    images.push_back(static_cast<std::byte>(philox(3, static_cast<std::uint64_t>(i), session.step()).word[0]));
  for (std::int64_t i = 0; i < examples; ++i) labels.push_back(static_cast<std::int32_t>(i % 10));
  labels.front() = first_label;
  return session.train_step(support::Labeled(images, labels));
}

// Parameters, momenta and statistics.
std::vector<std::byte> kept_bytes(const train::Session& session, bool statistics = true) {
  return support::state_bytes(session, [&](Role role) {
    return role == Role::parameter || role == Role::optimizer || (statistics && role == Role::statistic);
  });
}

Bytes gradient_bytes(const Plan& plan) {
  Bytes sum;
  for (const State& state : plan.program.states) {
    if (state.role == Role::gradient) sum += state.type.bytes();
  }
  return sum;
}

void expect_same_training(train::Session& plain, train::Session& fused, int steps) {
  for (int i = 0; i < steps; ++i) {
    const double expected = step(plain).loss;
    const double got = step(fused).loss;
    EXPECT_EQ(std::memcmp(&expected, &got, sizeof got), 0) << expected << " and " << got << " in step " << i;
  }
  EXPECT_TRUE(kept_bytes(plain) == kept_bytes(fused));
}

class FusedUpdate : public testing::TestWithParam<Setting> {};

TEST_P(FusedUpdate, HasThePlainOnesBitsAndThePlannedBytes) {
  train::Session plain = session_of(GetParam(), false), fused = session_of(GetParam(), true);
  EXPECT_GT(gradient_bytes(plain.plan()), Bytes(0));
  EXPECT_EQ(gradient_bytes(fused.plan()), Bytes(0));
  EXPECT_LT(fused.plan().planned_peak_bytes, plain.plan().planned_peak_bytes);
  fused.executor().start_measuring();
  const std::vector<std::byte> before = kept_bytes(fused);
  expect_same_training(plain, fused, 10);
  EXPECT_TRUE(before != kept_bytes(fused));
  EXPECT_EQ(fused.executor().measured_peak_bytes(), fused.plan().planned_peak_bytes);
}

TEST_P(FusedUpdate, CheckingModeFindsNothing) {
  train::Session plain = session_of(GetParam(), false), checked = session_of(GetParam(), true, Bytes(64));
  expect_same_training(plain, checked, 2);
}

TEST_P(FusedUpdate, ALossThatIsNotFiniteLeavesWeightsAndMomentaAsTheyWere) {
  train::Session plain = session_of(GetParam(), false), fused = session_of(GetParam(), true);
  expect_same_training(plain, fused, 1);
  const std::vector<std::byte> before = kept_bytes(fused, false);
  for (train::Session* session : {&plain, &fused}) {
    EXPECT_TRUE(step(*session, 99).skipped);  // no such class: the loss is NaN
    EXPECT_TRUE(kept_bytes(*session, false) == before);
  }
  expect_same_training(plain, fused, 2);
  EXPECT_TRUE(kept_bytes(fused, false) != before);
}

std::string name_of_setting(const testing::TestParamInfo<Setting>& test) {
  std::string name = (test.param.cpu ? "cpu_" : "reference_") + test.param.model + "_" + test.param.strategy;
  const Attributes& settings = test.param.update.settings;
  if (settings.has("nesterov") && settings.integer("nesterov") == 0)
    name += settings.real("momentum") > 0 ? "_momentum" : "_plain";
  std::replace(name.begin(), name.end(), '-', '_');
  std::replace(name.begin(), name.end(), '*', 's');
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Settings, FusedUpdate,
    testing::Values(
        Setting{.model = "small-cnn"}, Setting{.model = "wrn-10-1"}, Setting{.model = "wrn-10-1", .strategy = "sqrt"},
        Setting{.model = "wrn-10-1", .strategy = "residual-2*"}, Setting{.model = "tied"},
        Setting{.model = "tied", .strategy = "sqrt"},
        Setting{.model = "tied",
                .update = {.settings = ops::sgd_settings({.momentum = 0, .weight_decay = 0, .nesterov = false})}},
        Setting{.model = "small-cnn", .strategy = "every-2", .update = {.settings = ops::sgd_settings({.nesterov = false})}},
        Setting{.model = "small-cnn", .cpu = false}, Setting{.model = "tied", .strategy = "sqrt", .cpu = false},
        Setting{.model = "wrn-10-1", .strategy = "residual-2*", .cpu = false}),
    name_of_setting);

TEST(FusedUpdateSnapshots, ARunGoesOnWithItsSavedPlanOrAnother) {
  const support::TemporaryFolder folder;
  const Setting setting{.model = "small-cnn"};
  train::Session whole = session_of(setting, true);
  for (int i = 0; i < 3; ++i) step(whole);
  train::save_snapshot(folder / "snapshot", whole, {});
  for (int i = 0; i < 3; ++i) step(whole);

  const Backend backend = backend_of(setting);
  train::Session resumed(io::parse_plan(train::inspect_snapshot(folder / "snapshot").plan), backend, 99);
  EXPECT_EQ(resumed.plan().planned_peak_bytes, whole.plan().planned_peak_bytes);
  // A plan made anew, as evaluation and export make one; here it trains on, too.
  train::Session plain = session_of(setting, false);
  for (train::Session* session : {&resumed, &plain}) {
    train::load_snapshot(folder / "snapshot", *session);
    for (int i = 0; i < 3; ++i) step(*session);
    EXPECT_TRUE(kept_bytes(*session) == kept_bytes(whole));
  }
  train::export_weights(folder / "weights", whole);
  train::Session imported = session_of(setting, true);
  train::import_weights(folder / "weights", imported);
  EXPECT_EQ(imported.read_state("conv1.weight"), whole.read_state("conv1.weight"));
}

TEST(FusedUpdateBytes, TheGradientsOfAWideResidualNetworkAreNoLongerKept) {
  const Backend backend = backends::cpu_backend(2);
  const auto plan = [&](std::string_view strategy, bool fuses) {
    return compile(frontend::build_zoo_model("wrn-28-2", {.batch = 20}), backend,
                   {.methods = {.checkpoint = parse_checkpoint_strategy(strategy), .fuse_update = fuses}});
  };
  for (const char* strategy : {"none", "residual-2*"}) {
    const Plan plain = plan(strategy, false), fused = plan(strategy, true);
    EXPECT_GT(gradient_bytes(plain), Bytes(5'800'000));
    EXPECT_GE(plain.persistent_bytes - fused.persistent_bytes, gradient_bytes(plain));
    // Less what lives where the step is fullest: a layer's gradient at most.
    EXPECT_GT(plain.planned_peak_bytes - fused.planned_peak_bytes, Bytes(5'200'000)) << strategy;
  }
}

}  // namespace

}  // namespace snug
