// Two shapes of one model in one arena: a step's last microbatch is short, and runs in a section of its own size.
#include <gtest/gtest.h>

#include "backends/reference/reference.h"
#include "base/error.h"
#include "support/messages.h"
#include "trained_bits.h"

namespace snug::testing {
namespace {

// 17 examples are 10 and 7.
TrainedModel with_shapes(TrainedModel model) {
  model.batch = 17;
  model.microbatch = 10;
  model.second_microbatch = 7;
  return model;
}

TrainedModel padded(TrainedModel model) {
  model = with_shapes(std::move(model));
  model.second_microbatch = 0;
  return model;
}

class Shapes : public ::testing::TestWithParam<TrainedModel> {};

TEST_P(Shapes, GiveTheBitsThatPaddingGives) {
  const Backend reference = backends::reference_backend(2);
  expect_same_bits(trained(with_shapes(GetParam()), {}, reference), trained(padded(GetParam()), {}, reference));
}

TEST_P(Shapes, TakeNoMoreThanTheLargestAndWhatIsPlanned) {
  const TrainedBits two = trained(with_shapes(GetParam()), {.measured = true});
  const TrainedBits one = trained(padded(GetParam()), {.measured = true});
  EXPECT_EQ(two.planned, one.planned);
  EXPECT_EQ(two.measured, two.planned);
  for (std::size_t i = 0; i < one.losses.size(); ++i) EXPECT_NEAR(two.losses[i], one.losses[i], 1e-3 * one.losses[i]) << i;
}

TEST_P(Shapes, GoWithTheOtherMethods) {
  const TrainedModel model = with_shapes(GetParam());
  const TrainedBits plain = trained(model);
  for (const TrainedHow& how : {TrainedHow{.checkpoint = "sqrt"}, TrainedHow{.checkpoint = "every-2", .with = {.offload = true}},
                                TrainedHow{.without = {"share_bytes"}}}) {
    SCOPED_TRACE(std::string(how.checkpoint) + " " + print_methods(how.with) + (how.without.empty() ? "" : how.without[0]));
    expect_same_bits(trained(model, how), plain);
  }
  // Its copies of weights are states of their own.
  EXPECT_EQ(trained(model, {.with = {.prepack_weights = true}}).losses, plain.losses);
}

TEST_P(Shapes, TouchNothingThatIsNotTheirOwn) {
  const TrainedModel model = with_shapes(GetParam());
  expect_same_bits(trained(model, {.red_zone = Bytes(64)}), trained(model));
}

INSTANTIATE_TEST_SUITE_P(Models, Shapes,
                         ::testing::Values(TrainedModel{.name = "small-cnn", .image_size = 16, .steps = 3, .threads = 1},
                                           TrainedModel{.name = "wrn-10-1", .image_size = 16, .steps = 2, .threads = 1}),
                         [](const auto& instance) { return test_name(instance.param.name); });

TEST(Shapes, AFusedUpdateIsRefused) {
  const TrainedModel model = {
      .name = "small-cnn", .microbatch = 10, .batch = 10, .image_size = 16, .steps = 1, .second_microbatch = 7};
  try {
    trained(model, {.with = {.fuse_update = true}});
    FAIL() << "it was taken";
  } catch (const UserError& error) {
    EXPECT_TRUE(support::mentions(std::string(error.what()), {"several", "sizes"})) << error.what();
  }
}

TEST(Shapes, SparseWeightsAreThoseOfAllShapes) {
  TrainedModel model = with_shapes({.name = "wrn-10-1", .image_size = 16, .steps = 4, .threads = 1, .rewire_every = 2});
  model.nonzero = 0.3;
  model.sparse = {.rewire_fraction = 0.02, .threshold = 0.01};
  TrainedModel without_second = model;
  without_second.second_microbatch = 0;
  const Backend reference = backends::reference_backend(2);
  expect_same_bits(trained(model, {}, reference), trained(without_second, {}, reference));
}

}  // namespace
}  // namespace snug::testing
