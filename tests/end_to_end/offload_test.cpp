// Activations that wait in host memory: the same bits, less on the device, and both arenas as planned.
#include <gtest/gtest.h>

#include "trained_bits.h"

namespace snug::testing {
namespace {

const Methods kOffload{.offload = true};

class Offload : public ::testing::TestWithParam<TrainedModel> {};

TEST_P(Offload, ChangesNoBitAndTakesLessOfTheDevice) {
  const TrainedBits plain = trained(GetParam(), {.measured = true});
  const TrainedBits offloaded = trained(GetParam(), {.with = kOffload, .measured = true});
  expect_same_bits(offloaded, plain);
  EXPECT_LT(offloaded.planned, plain.planned);
  EXPECT_EQ(offloaded.measured, offloaded.planned);
  EXPECT_GT(offloaded.host_planned, Bytes(0));
  EXPECT_EQ(offloaded.host_measured, offloaded.host_planned);
  EXPECT_EQ(plain.host_planned, Bytes(0));
  EXPECT_EQ(plain.host_measured, Bytes(0));
}

TEST_P(Offload, ChangesNoBitWithOtherMethods) {
  const TrainedBits plain = trained(GetParam());
  expect_same_bits(trained(GetParam(), {.checkpoint = "sqrt", .with = kOffload}), plain);
  TrainedModel whole = GetParam();  // a fused update sees all of a step's gradients at once
  whole.microbatch = whole.batch;
  expect_same_bits(trained(whole, {.with = {.offload = true, .fuse_update = true}}),
                   trained(whole, {.with = {.fuse_update = true}}));
  expect_same_bits(trained(GetParam(), {.with = {.compress_bits = 4, .offload = true}}),
                   trained(GetParam(), {.with = {.compress_bits = 4}}));
}

TEST_P(Offload, TouchesNothingThatIsNotItsOwn) {
  expect_same_bits(trained(GetParam(), {.with = kOffload, .red_zone = Bytes(64)}), trained(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Models, Offload,
                         ::testing::Values(TrainedModel{.name = "small-cnn"}, TrainedModel{.name = "wrn-10-1"},
                                           TrainedModel{.name = "dropout-network", .image_size = 16},
                                           TrainedModel{.name = "wrn-10-1", .dtype = DType::bf16}),
                         [](const auto& instance) {
                           return test_name(instance.param.name + "_" + std::string(name_of(instance.param.dtype)));
                         });

}  // namespace
}  // namespace snug::testing
