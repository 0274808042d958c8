// Exact means bits: at one microbatch size, losses and every weight, momentum and statistic after ten steps are the same whatever
// is kept, made again, added in place or laid into the bytes of others. Networks at their real depth, so that every kind of block
// and every place where a strategy cuts is there. bench/exactness.py does the same on a GPU.
#include <fmt/format.h>

#include "trained_bits.h"

namespace snug::testing {

namespace {

// "greedy:60%": of the transient bytes of plain training.
std::string with_bytes(const std::string& strategy, Bytes all) {
  if (!strategy.ends_with('%')) return strategy;
  const std::size_t colon = strategy.find(':');
  return fmt::format("{}:{}", strategy.substr(0, colon), all.count() * std::stoll(strategy.substr(colon + 1)) / 100);
}

// Several strategies to a test, because each test trains plainly first, and several tests to a model, because they run side by
// side.
struct Exactness {
  TrainedModel model;
  std::vector<std::string> strategies;
};

std::string name_of(const Exactness& test) {
  std::string name = fmt::format("{} {} in {}", test.model.name, snug::name_of(test.model.dtype),
                                 (test.model.batch + test.model.microbatch - 1) / test.model.microbatch);
  for (const std::string& strategy : test.strategies) name += " " + strategy;
  return test_name(name);
}

std::ostream& operator<<(std::ostream& out, const Exactness& test) { return out << name_of(test); }

class Exact : public ::testing::TestWithParam<Exactness> {};

TEST_P(Exact, WhateverIsMadeAgain) {
  const TrainedModel& model = GetParam().model;
  const TrainedBits plain = trained(model);
  EXPECT_NE(plain.losses.front(), plain.losses.back());
  for (const std::string& strategy : GetParam().strategies) {
    SCOPED_TRACE(strategy);
    const TrainedBits bits = trained(model, {.checkpoint = with_bytes(strategy, plain.transient)});
    expect_same_bits(bits, plain);
    EXPECT_LT(bits.planned, plain.planned);
  }
}

class ExactInPlace : public ::testing::TestWithParam<Exactness> {};

TEST_P(ExactInPlace, WhateverLiesInOthersBytes) {
  const TrainedModel& model = GetParam().model;
  const TrainedBits plain = trained(model);
  for (const std::string& strategy : GetParam().strategies) {
    SCOPED_TRACE(strategy);
    const std::string checkpoint = with_bytes(strategy, plain.transient);
    expect_same_bits(trained(model, {.checkpoint = checkpoint, .without = {"accumulate_in_place", "share_bytes"}}), plain);
    expect_same_bits(trained(model, {.checkpoint = checkpoint, .without = {"accumulate_in_place"}}), plain);
    expect_same_bits(trained(model, {.checkpoint = checkpoint, .without = {"share_bytes"}}), plain);
  }
}

const TrainedModel kWrn{.name = "wrn-28-2", .microbatch = 4, .batch = 4, .image_size = 16, .steps = 10, .threads = 1};
const TrainedModel kWrnInThree{.name = "wrn-28-2", .microbatch = 2, .batch = 6, .image_size = 16, .steps = 10, .threads = 1};
const TrainedModel kResNet{.name = "resnet-50", .microbatch = 2, .batch = 2, .image_size = 32, .steps = 10, .threads = 1};
const TrainedModel kDropout{.name = "dropout-network", .microbatch = 4, .batch = 10, .steps = 10, .threads = 1};

const TrainedModel kHalfWrn{
    .name = "wrn-28-2", .microbatch = 2, .batch = 6, .image_size = 16, .steps = 6, .threads = 1, .dtype = DType::bf16};
const TrainedModel kFp16Wrn{
    .name = "wrn-10-1", .microbatch = 2, .batch = 6, .image_size = 16, .steps = 3, .threads = 2, .dtype = DType::f16};
const TrainedModel kHalfDropout{
    .name = "dropout-network", .microbatch = 4, .batch = 10, .steps = 6, .threads = 2, .dtype = DType::bf16};

INSTANTIATE_TEST_SUITE_P(
    Models, Exact,
    ::testing::Values(Exactness{kWrn, {"no-bn", "every-3", "sqrt", "log", "chen", "greedy:60%"}},
                      Exactness{kWrn, {"residual-1", "residual-2", "residual-2*", "greedy:30%", "optimal:60%", "optimal:20%"}},
                      Exactness{kWrnInThree, {"no-bn", "residual-2*", "log", "greedy:40%", "optimal:30%"}},
                      Exactness{kResNet, {"no-bn", "every-3", "sqrt", "greedy:60%", "optimal:50%"}},
                      Exactness{kResNet, {"residual-1", "residual-2", "residual-2*", "log", "greedy:30%"}},
                      Exactness{kDropout, {"no-bn", "every-3", "sqrt", "log", "greedy:80%", "greedy:60%", "optimal:60%"}},
                      Exactness{kHalfWrn, {"no-bn", "residual-2*", "log", "greedy:40%", "optimal:30%"}},
                      Exactness{kFp16Wrn, {"no-bn", "residual-1"}}, Exactness{kHalfDropout, {"no-bn", "sqrt", "greedy:60%"}}),
    [](const auto& test) { return name_of(test.param); });

INSTANTIATE_TEST_SUITE_P(Models, ExactInPlace,
                         ::testing::Values(Exactness{kWrn, {"none", "residual-2*"}}, Exactness{kWrnInThree, {"greedy:40%"}},
                                           Exactness{kResNet, {"greedy:40%"}}, Exactness{kHalfWrn, {"residual-2*"}},
                                           Exactness{kDropout, {"none", "log", "greedy:60%"}}),
                         [](const auto& test) { return name_of(test.param); });

}  // namespace

}  // namespace snug::testing
