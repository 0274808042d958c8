// Sparse weights go with every memory method, and none of these changes a bit of what they become.
#include <gtest/gtest.h>

#include "trained_bits.h"

namespace snug::testing {
namespace {

TrainedModel sparse_model() {
  TrainedModel model;
  model.image_size = 16;
  model.nonzero = 0.3;
  model.sparse = {.rewire_fraction = 0.02, .threshold = 0.01};
  model.rewire_every = 2;
  return model;
}

const TrainedBits& plain() {
  static const TrainedBits bits = trained(sparse_model());
  return bits;
}

TEST(SparseTraining, LosesLossAndMovesItsPattern) {
  TrainedModel model = sparse_model();
  model.rewire_every = 0;
  const TrainedBits still = trained(model);
  EXPECT_EQ(still.losses[1], plain().losses[1]);  // the first rewiring comes behind the second step
  EXPECT_NE(still.losses[3], plain().losses[3]);
}

TEST(SparseTraining, HasTheSameBitsUnderEveryStrategy) {
  for (const char* strategy : {"no-bn", "residual-1", "residual-1*", "sqrt", "log", "optimal:1MB", "greedy:1MB"}) {
    SCOPED_TRACE(strategy);
    const TrainedBits bits = trained(sparse_model(), {.checkpoint = strategy});
    expect_same_bits(bits, plain());
    EXPECT_LE(bits.planned, plain().planned);
  }
}

TEST(SparseTraining, HasTheSameBitsWithoutSharingAndWithRedZones) {
  expect_same_bits(trained(sparse_model(), {.without = {"share_bytes"}}), plain());
  expect_same_bits(trained(sparse_model(), {.without = {"accumulate_in_place"}}), plain());
  expect_same_bits(trained(sparse_model(), {.red_zone = Bytes(64)}), plain());
}

TEST(SparseTraining, MeasuresWhatWasPlanned) {
  const TrainedBits bits = trained(sparse_model(), {.checkpoint = "residual-1*", .measured = true});
  EXPECT_EQ(bits.measured, bits.planned);
}

TEST(SparseTraining, TakesLessThanDenseTrainingByTheWeightsThatAreNotThere) {
  TrainedModel dense = sparse_model();
  dense.nonzero = 1;
  dense.rewire_every = 0;
  const TrainedBits bits = trained(dense);
  EXPECT_LT((plain().planned - plain().transient).count(), (bits.planned - bits.transient).count() / 2);
}

}  // namespace
}  // namespace snug::testing
