// Sparse weights over a run: snapshots, rewirings, and the way out as dense tensors.
#include <algorithm>
#include <cstring>
#include <numeric>

#include <gtest/gtest.h>

#include "io/plan_file.h"
#include "small_session.h"
#include "support/files.h"
#include "support/labeled.h"
#include "train/rewiring.h"
#include "train/snapshot.h"
#include "train/sparse_weights.h"
#include "train/weights.h"
#include <snug/error.h>

namespace snug::train {

using support::TemporaryFolder;

namespace {

SmallModel sparse_model(SparseMethod method = SparseMethod::dsr) {
  return {.nonzero = 0.3, .sparse = {.method = method, .rewire_fraction = 0.05, .threshold = 0.02}};
}

std::int64_t sum_of(const SparseReport& report) {
  return std::accumulate(report.nonzeros.begin(), report.nonzeros.end(), std::int64_t{0},
                         [](std::int64_t sum, const auto& layer) { return sum + layer.second; });
}

TEST(Sparse, ResumedRunHasTheBitsOfOneThatNeverStopped) {
  const TemporaryFolder folder;
  const auto step_and_rewire = [](Session& session) {
    small_step(session);
    if (session.step() % 2 == 0) session.run_periodic();
  };
  Session whole = small_session(7, sparse_model());
  for (int i = 0; i < 6; ++i) step_and_rewire(whole);
  for (const int stop : {2, 3}) {
    Session first = small_session(7, sparse_model());
    for (int i = 0; i < stop; ++i) step_and_rewire(first);
    save_snapshot(folder / "a", first, {});
    const Backend backend = backends::cpu_backend(1);
    Session second(io::parse_plan(inspect_snapshot(folder / "a").plan), backend, 99);
    step_and_rewire(second);
    load_snapshot(folder / "a", second);
    EXPECT_EQ(all_bytes(second), all_bytes(first));
    for (int i = stop; i < 6; ++i) step_and_rewire(second);
    EXPECT_EQ(all_bytes(second), all_bytes(whole)) << stop;
  }
}

TEST(Sparse, SnapshotHasTheNonzerosAndNoDenseTensor) {
  const TemporaryFolder folder;
  Session session = small_session(7, sparse_model());
  save_snapshot(folder / "a", session, {});
  const SnapshotInfo info = inspect_snapshot(folder / "a");
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(info.tensors, [&](const io::TensorInfo& tensor) { return tensor.name == name; });
  };
  EXPECT_FALSE(has("conv2.weight"));
  for (const char* name : {"sparse.weight", "sparse.weight.momentum", "sparse.columns", "sparse.rows", "sparse.threshold"})
    EXPECT_TRUE(has(name)) << name;
}

TEST(Sparse, RewiringKeepsTheCountResetsMomentumAndMovesTheThreshold) {
  for (const auto method : {SparseMethod::dsr, SparseMethod::set}) {
    Session session = small_session(7, sparse_model(method));
    const std::int64_t nonzeros = sum_of(describe_sparse(session));
    EXPECT_EQ(nonzeros, 691);  // 0.3 of 16*16*9
    for (int i = 0; i < 4; ++i) small_step(session);
    const std::vector<double> momentum = session.read_state("sparse.weight.momentum");
    EXPECT_TRUE(std::ranges::any_of(momentum, [](double value) { return value != 0; }));
    const double before = describe_sparse(session).threshold;
    session.run_periodic();
    const SparseReport report = describe_sparse(session);
    EXPECT_EQ(sum_of(report), nonzeros);
    EXPECT_GT(report.pruned, 0);
    const double target = std::round(0.05 * 16 * 16 * 9);
    const double pruned = static_cast<double>(report.pruned);
    if (method == SparseMethod::set) {
      EXPECT_EQ(report.pruned, std::llround(target));
      EXPECT_EQ(report.threshold, before);
    } else {
      EXPECT_EQ(report.threshold, pruned < 0.9 * target ? 2 * before : pruned > 1.1 * target ? before / 2 : before);
    }
    for (const char* name : {"sparse.weight.momentum", "sparse.weight.grad"}) {
      const std::vector<double> values = session.read_state(name);
      EXPECT_TRUE(std::ranges::all_of(values, [](double value) { return value == 0; })) << name;
    }
    const std::vector<double> weights = session.read_state("sparse.weight");
    EXPECT_GE(std::ranges::count(weights, 0.0), report.pruned);
    EXPECT_GT(small_step(session), 0);
  }
}

TEST(Sparse, ThresholdComesToTheTarget) {
  Session session = small_session(7, sparse_model());
  const double target = 0.05 * 16 * 16 * 9;
  for (int i = 0; i < 20; ++i) {
    for (int k = 0; k < 3; ++k) small_step(session);
    session.run_periodic();
  }
  const double pruned = static_cast<double>(describe_sparse(session).pruned);
  EXPECT_GT(pruned, target / 3);
  EXPECT_LT(pruned, target * 3);
}

TEST(Sparse, BeginsWithTheDenseModelsWeightsWhereItHasAny) {
  Session dense = small_session(7);
  Session sparse = small_session(7, sparse_model());
  const std::vector<double> all = dense.read_state("conv2.weight");
  std::vector<float> exported;
  read_sparse_tensor(sparse, 0, [&](std::span<const std::byte> row) {
    const std::size_t before = exported.size();
    exported.resize(before + row.size() / sizeof(float));
    std::memcpy(exported.data() + before, row.data(), row.size());
  });
  ASSERT_EQ(exported.size(), all.size());
  std::size_t nonzeros = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (exported[i] == 0) continue;
    EXPECT_EQ(exported[i], static_cast<float>(all[i]));
    ++nonzeros;
  }
  EXPECT_EQ(nonzeros, 691U);
  for (const char* name : {"conv1.weight", "conv2.bias", "fc.weight"}) EXPECT_EQ(sparse.read_state(name), dense.read_state(name));
}

TEST(Sparse, ExportedWeightsAreADenseModelThatComputesTheSame) {
  const TemporaryFolder folder;
  Session sparse = small_session(7, sparse_model());
  for (int i = 0; i < 4; ++i) small_step(sparse);
  sparse.run_periodic();
  small_step(sparse);
  export_weights(folder / "w", sparse);
  Session dense = small_session(1);
  import_weights(folder / "w", dense);
  std::vector<std::byte> images(static_cast<std::size_t>(kSmallBatch * kSmallImage * kSmallImage * 3));
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<std::byte>(i * 37 % 251);
  const std::vector<std::int32_t> labels{0, 1, 2, 3, 4, 0};
  const Result a = sparse.evaluate(support::Labeled(images, labels));
  const Result b = dense.evaluate(support::Labeled(images, labels));
  EXPECT_NEAR(a.loss, b.loss, 1e-5 * std::abs(b.loss));
  EXPECT_EQ(a.score, b.score);
  EXPECT_THROW(import_weights(folder / "w", sparse), UserError);
}

TEST(RewiringSchedule, HasAPeriodUpToEveryMilestone) {
  const RewiringSchedule schedule{.every = {100, 200, 0}, .milestones = {1000, 2000}};
  EXPECT_FALSE(rewires_after(schedule, 99));
  EXPECT_TRUE(rewires_after(schedule, 100));
  EXPECT_TRUE(rewires_after(schedule, 1000));
  EXPECT_FALSE(rewires_after(schedule, 1100));
  EXPECT_TRUE(rewires_after(schedule, 1200));
  EXPECT_TRUE(rewires_after(schedule, 2000));
  EXPECT_FALSE(rewires_after(schedule, 2200));
  EXPECT_FALSE(rewires_after({}, 100));
}

}  // namespace

}  // namespace snug::train
