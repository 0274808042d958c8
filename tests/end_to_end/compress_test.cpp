// Activations that wait for backward in few bits: what it saves, what it leaves alone, and that gradients stay right on average.
#include <cmath>

#include "io/plan_file.h"
#include "support/labeled.h"
#include "support/temporary_folder.h"
#include "train/snapshot.h"
#include "trained_bits.h"

namespace snug::testing {

namespace {

struct Setting {
  std::string model;
  std::string strategy = "none";
  int bits = 4;
  DType dtype = DType::f32;
  double nonzero = 1;
};

class Compressed : public ::testing::TestWithParam<Setting> {
 protected:
  TrainedModel model() const {
    return {.name = GetParam().model,
            .image_size = 16,
            .steps = 3,
            .threads = 1,
            .dtype = GetParam().dtype,
            .nonzero = GetParam().nonzero};
  }
  TrainedHow how() const {
    return {.checkpoint = GetParam().strategy, .with = {.compress_bits = GetParam().bits}, .measured = true};
  }
};

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

TEST_P(Compressed, TakesFewerBytesAndExactlyThePlannedOnes) {
  TrainedHow plain = how();
  plain.with = {};
  const TrainedBits with = trained(model(), how());
  const TrainedBits without = trained(model(), plain);
  EXPECT_LT(with.planned, without.planned);
  EXPECT_EQ(with.measured, with.planned);
  // The first step's forward pass knows nothing of it; from then on the weights differ, a little.
  EXPECT_EQ(with.losses[0], without.losses[0]);
  EXPECT_NE(with.losses[2], without.losses[2]);
}

// The first step's gradients, beside the exact ones. With few bits they are noisy by themselves (batch norm on a few images
// leaves little of its terms, and all of their errors), but still lie along them, which what comes back wrong would not; with
// eight bits they are close. A single draw of two bits is mostly noise here: CompressedGradients looks at the mean of many.
TEST_P(Compressed, GradientsLieAlongTheExactOnes) {
  TrainedModel once = model();
  once.steps = 1;
  TrainedHow plain = how(), fine = how();
  plain.with = {};
  fine.with.compress_bits = 8;
  const auto exact = trained(once, plain).first_momenta, close = trained(once, fine).first_momenta,
             with = trained(once, how()).first_momenta;
  ASSERT_FALSE(exact.empty());
  for (const auto& [name, gradient] : exact) {
    const std::vector<double> zeros(gradient.size(), 0.0);
    const double length = distance(gradient, zeros);
    EXPECT_GT(length, 0) << name;
    if (gradient.size() < 400) continue;  // too few for unrelated numbers to be surely across
    EXPECT_LT(distance(close.at(name), gradient), 0.4 * length) << name;
    double along = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i) along += with.at(name)[i] * gradient[i];
    const double cosine = along / (length * distance(with.at(name), zeros));
    EXPECT_TRUE(GetParam().bits < 4 || cosine > (GetParam().bits == 8 ? 0.99 : 0.5)) << name << " " << cosine;
  }
}

TEST_P(Compressed, HasTheSameBitsWithoutSharingAndUnderChecking) {
  const TrainedBits bits = trained(model(), how());
  TrainedHow other = how();
  other.without = {"share_bytes", "accumulate_in_place"};
  expect_same_bits(trained(model(), other), bits);
  other = how();
  other.measured = false;
  other.red_zone = Bytes(64);
  expect_same_bits(trained(model(), other), bits);
}

INSTANTIATE_TEST_SUITE_P(Models, Compressed,
                         ::testing::Values(Setting{.model = "wrn-10-1"}, Setting{.model = "wrn-10-1", .bits = 2},
                                           Setting{.model = "wrn-10-1", .strategy = "residual-1*"},
                                           Setting{.model = "wrn-10-1", .dtype = DType::bf16},
                                           Setting{.model = "wrn-10-1", .strategy = "sqrt", .dtype = DType::f16},
                                           Setting{.model = "wrn-10-1", .dtype = DType::bf16, .nonzero = 0.3},
                                           Setting{.model = "dropout-network", .bits = 8},
                                           Setting{.model = "dropout-network", .strategy = "sqrt"}),
                         [](const auto& test) {
                           const Setting& set = test.param;
                           return test_name(set.model + "_" + set.strategy + "_" + std::to_string(set.bits) + "_" +
                                            std::string(name_of(set.dtype)) + (set.nonzero < 1 ? "_sparse" : ""));
                         });

// Convolutions and ReLUs: backward is linear in everything that is packed, and ReLUs have their bits.
Program convolutions(std::int64_t batch) {
  frontend::GraphBuilder b("convolutions", batch);
  ValueId x = b.images({.height = 12, .width = 12, .augment = false});
  for (const char* name : {"conv1", "conv2", "conv3"}) {
    x = b.relu(std::string("relu.") + name, b.conv2d(name, x, {.out_channels = 12, .padding = 1, .bias = true}));
  }
  b.softmax_cross_entropy(b.linear("fc", b.global_avg_pool("pool", x), 10));
  return std::move(b).finish();
}

constexpr std::int64_t kBatch = 6;

// The gradient of every parameter, one behind the other, of the same weights and images whatever the seed.
std::vector<double> gradients(std::optional<std::int64_t> bits, std::uint64_t seed) {
  const Backend backend = backends::cpu_backend(2);
  const ops::UpdateOptions plain{.settings = ops::sgd_settings({.momentum = 0, .weight_decay = 0, .nesterov = false})};
  train::Session session(compile(convolutions(kBatch), backend, {.methods = {.compress_bits = bits}, .update = plain}), backend,
                         seed);
  session.set_learning_rate(1);
  const Program& program = session.plan().program;
  std::vector<double> before;
  for (const State& state : program.states) {
    if (state.role != Role::parameter) continue;
    std::vector<double> values(static_cast<std::size_t>(state.type.elements()));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = 0.4 * (static_cast<double>(philox(8, before.size() + i, 0).word[0]) / 4294967296.0 - 0.45);
    session.write_state(state.name, values);
    values = session.read_state(state.name);
    before.insert(before.end(), values.begin(), values.end());
  }
  std::vector<std::byte> images;
  for (std::uint64_t i = 0; i < kBatch * 12 * 12 * 3; ++i) images.push_back(static_cast<std::byte>(philox(3, i, 0).word[0]));
  session.train_step(support::Labeled(images, std::vector<std::int32_t>{1, 2, 3, 4, 5, 6}));
  std::vector<double> gradient;
  for (const State& state : program.states) {
    if (state.role != Role::parameter) continue;
    for (const double after : session.read_state(state.name)) gradient.push_back(before[gradient.size()] - after);
  }
  return gradient;
}

TEST(CompressedGradients, AreRightOnAverage) {
  const std::vector<double> exact = gradients({}, 0);
  const double length = distance(exact, std::vector<double>(exact.size(), 0.0));
  constexpr int kSeeds = 24;
  for (const int bits : {2, 4}) {
    std::vector<double> mean(exact.size(), 0.0);
    double single = 0;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      const std::vector<double> one = gradients(bits, seed);
      single += distance(one, exact) / kSeeds;
      for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += one[i] / kSeeds;
    }
    EXPECT_GT(single, 1e-4 * length);
    EXPECT_LT(single, (bits == 2 ? 0.3 : 0.1) * length);
    // Errors that are independent and have no part in common shrink by the root of their number.
    EXPECT_LT(distance(mean, exact), 1.5 * single / std::sqrt(kSeeds)) << bits << " bits";
  }
}

TEST(CompressedRuns, AResumedRunDrawsTheSameNumbers) {
  const support::TemporaryFolder folder;
  const Backend backend = backends::cpu_backend(2);
  const auto session = [&](std::uint64_t seed) {
    train::Session made(compile(convolutions(kBatch), backend, {.methods = {.compress_bits = 4}}), backend, seed);
    made.set_learning_rate(0.1);
    return made;
  };
  const auto step = [](train::Session& trained) {
    const std::vector<std::byte> images(kBatch * 12 * 12 * 3, static_cast<std::byte>(40 + trained.step()));
    trained.train_step(support::Labeled(images, std::vector<std::int32_t>{1, 2, 3, 4, 5, 6}));
  };
  train::Session whole = session(3);
  for (int i = 0; i < 2; ++i) step(whole);
  train::save_snapshot(folder / "snapshot", whole, {});
  for (int i = 0; i < 2; ++i) step(whole);
  train::Session resumed(io::parse_plan(train::inspect_snapshot(folder / "snapshot").plan), backend, 99);
  train::load_snapshot(folder / "snapshot", resumed);
  resumed.set_learning_rate(0.1);
  for (int i = 0; i < 2; ++i) step(resumed);
  EXPECT_EQ(resumed.read_state("conv2.weight"), whole.read_state("conv2.weight"));
}

TEST(CompressedBytes, OfAWideResidualNetworkAreAFractionOfThePlainOnes) {
  const Backend backend = backends::cpu_backend(2);
  const auto transient = [&](std::optional<std::int64_t> bits, std::string_view strategy) {
    const Plan plan = compile(frontend::build_zoo_model("wrn-28-2", {.batch = 20}), backend,
                              {.methods = {.checkpoint = parse_checkpoint_strategy(strategy), .compress_bits = bits}});
    return static_cast<double>((plan.planned_peak_bytes - plan.persistent_bytes).count());
  };
  EXPECT_LT(transient(4, "none"), 0.25 * transient({}, "none"));
  EXPECT_LT(transient(8, "none"), 0.4 * transient({}, "none"));
  EXPECT_LT(transient(2, "none"), transient(4, "none"));
  EXPECT_LT(transient(4, "residual-1"), 0.8 * transient({}, "residual-1"));  // what is packed there are the checkpoints
}

}  // namespace

}  // namespace snug::testing
