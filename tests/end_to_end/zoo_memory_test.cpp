// Planned bytes against bytes found by looking, for every model of the zoo.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "backends/reference/reference.h"
#include "base/philox.h"
#include "frontend/zoo.h"
#include "ir/kernel.h"
#include "plan/compile.h"
#include "support/labeled.h"
#include "train/session.h"

namespace snug {

namespace {

struct ZooCase {
  std::string model;
  std::int64_t image_size;  // smaller than the model's own where that takes the reference kernels minutes
  Backend (*make_backend)(int threads);
  std::string backend;
};

void PrintTo(const ZooCase& test, std::ostream* out) { *out << test.model << " on " << test.backend; }

// SNUG_FULL_SIZE=1 runs every model at its own image size.
std::int64_t image_size(const ZooCase& test) { return std::getenv("SNUG_FULL_SIZE") != nullptr ? 0 : test.image_size; }

struct Batch {
  std::vector<std::byte> images;
  std::vector<std::int32_t> labels;
};

Batch noise_batch(const Plan& plan, std::int64_t examples) {
  Batch batch;
  const Type& type = plan.program.state(plan.program.find_state("images")).type;
  const auto bytes = static_cast<std::size_t>(type.bytes().count() / plan.program.microbatch * examples);
  for (std::size_t i = 0; i < bytes; ++i) batch.images.push_back(static_cast<std::byte>(philox(3, i, 0).word[0]));
  for (std::int64_t i = 0; i < examples; ++i) batch.labels.push_back(static_cast<std::int32_t>(i % 10));
  return batch;
}

Plan plan_for(const ZooCase& test, std::int64_t batch, Bytes red_zone, const Backend& backend) {
  return compile(frontend::build_zoo_model(test.model, {.batch = batch, .image_size = image_size(test)}), backend,
                 {.red_zone = red_zone});
}

class Zoo : public testing::TestWithParam<ZooCase> {};

TEST_P(Zoo, PlannedPeakIsTheMeasuredPeakAtThreeBatchSizes) {
  for (const std::int64_t batch : {1, 2, 3}) {
    const Backend backend = GetParam().make_backend(2);
    train::Session session(plan_for(GetParam(), batch, Bytes(0), backend), backend, 1);
    session.set_learning_rate(1e-3);
    const Batch examples = noise_batch(session.plan(), batch);
    session.executor().start_measuring();
    session.train_step(support::Labeled(examples.images, examples.labels));
    session.train_step(support::Labeled(examples.images, examples.labels));
    EXPECT_EQ(session.executor().measured_peak_bytes().count(), session.plan().planned_peak_bytes.count()) << "batch " << batch;
    EXPECT_EQ(session.executor().arena().size(), session.plan().planned_peak_bytes);
    EXPECT_TRUE(session.executor().arena().margins_untouched());
  }
}

// Loss and every state after two steps and an evaluation.
std::vector<double> outcome(const ZooCase& test, Bytes red_zone) {
  const Backend backend = test.make_backend(2);
  train::Session session(plan_for(test, 2, red_zone, backend), backend, 1);
  session.set_learning_rate(1e-3);
  const Batch examples = noise_batch(session.plan(), 2);
  std::vector<double> result;
  for (int step = 0; step < 2; ++step)
    result.push_back(session.train_step(support::Labeled(examples.images, examples.labels)).loss);
  result.push_back(session.evaluate(support::Labeled(examples.images, examples.labels)).loss);
  for (const State& state : session.plan().program.states) {
    if (state.type.dtype != DType::f32) continue;
    const std::vector<double> values = session.read_state(state.name);
    result.insert(result.end(), values.begin(), values.end());
  }
  return result;
}

TEST_P(Zoo, CheckingModeDoesNotChangeABit) {
  const std::vector<double> plain = outcome(GetParam(), Bytes(0));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(std::isfinite(plain[i])) << i;
  EXPECT_EQ(outcome(GetParam(), Bytes(128)), plain);
}

std::string name_of_case(const testing::TestParamInfo<ZooCase>& test) {
  std::string name = test.param.model + "_on_" + test.param.backend;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::vector<ZooCase> cases() {
  std::vector<ZooCase> result;
  const auto add = [&](const std::string& model, std::int64_t reference_size, std::int64_t cpu_size) {
    result.push_back({model, reference_size, backends::reference_backend, "reference"});
    result.push_back({model, cpu_size, backends::cpu_backend, "cpu"});
  };
  add("wrn-28-2", 16, 32);
  add("wrn-10-1", 32, 32);
  add("preresnet-20", 32, 32);
  add("preresnet-29", 16, 32);
  add("resnet-18", 64, 224);
  add("resnet-50", 64, 224);
  add("vgg-16", 32, 64);
  add("small-cnn", 32, 32);
  return result;
}

INSTANTIATE_TEST_SUITE_P(EveryModel, Zoo, testing::ValuesIn(cases()), name_of_case);

}  // namespace

}  // namespace snug
