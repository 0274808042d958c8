#include "train/average.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "io/elements.h"
#include "small_session.h"
#include "support/files.h"
#include "support/messages.h"
#include "support/temporary_folder.h"
#include "train/snapshot.h"
#include "train/weights.h"

namespace snug::train {
namespace {

namespace fs = std::filesystem;
using support::bytes_of;
using support::mentions;
using support::message_of;
using support::TemporaryFolder;

// Snapshots after so many steps each.
std::vector<fs::path> save_steps(Session& session, const fs::path& folder, int count) {
  std::vector<fs::path> paths;
  for (int i = 0; i < count; ++i) {
    small_step(session);
    paths.push_back(folder / std::to_string(session.step()));
    save_snapshot(paths.back(), session, {});
  }
  return paths;
}

std::vector<double> values_in(const fs::path& snapshot, const std::string& state, const SmallModel& model) {
  Session session = small_session(1, model);
  load_snapshot(snapshot, session);
  return session.read_state(state);
}

double rounded(double value, DType to) {
  std::vector<std::byte> stored(static_cast<std::size_t>(bits_per_element(to)) / 8);
  io::convert_elements(DType::f64, std::as_bytes(std::span(&value, 1)), to, stored);
  io::convert_elements(to, stored, DType::f64, std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

TEST(Average, OfOneSnapshotIsItsExportBitForBit) {
  const TemporaryFolder folder;
  for (const SmallModel& model : {SmallModel{}, SmallModel{.dtype = DType::bf16}, SmallModel{.nonzero = 0.3}}) {
    Session session = small_session(7, model);
    session.write_state("fc.bias", std::vector<double>{-0.0, 0.0, 1e-30, 1, 2});
    save_snapshot(folder / "s", session, {});
    export_weights(folder / "w", session);
    const std::vector<fs::path> only{folder / "s"};
    EXPECT_EQ(average_snapshots(only, session), (std::vector<std::uint64_t>{0}));
    export_weights(folder / "a", session);
    EXPECT_EQ(bytes_of(folder / "a"), bytes_of(folder / "w"));
  }
}

TEST(Average, OfSeveralIsTheMeanRoundedOnce) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    SCOPED_TRACE(name_of(dtype));
    const TemporaryFolder folder;
    const SmallModel model{.dtype = dtype};
    Session session = small_session(7, model);
    const std::vector<fs::path> paths = save_steps(session, folder.path(), 3);
    for (const std::size_t count : {2U, 3U}) {
      const auto some = std::span(paths).first(count);
      EXPECT_EQ(average_snapshots(some, session).size(), count);
      EXPECT_EQ(session.step(), 3U);
      for (const char* name : {"conv1.weight", "conv2.weight", "conv2.bias", "bn1.weight", "bn1.running_var", "fc.weight"}) {
        const Program& program = session.plan().program;
        const DType stored = program.state(program.find_state(name)).type.dtype;
        std::vector<double> mean(session.read_state(name).size(), 0);
        for (const fs::path& path : some) {
          const std::vector<double> values = values_in(path, name, model);
          for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += values[i];
        }
        for (double& value : mean) value = rounded(value / static_cast<double>(count), stored);
        EXPECT_EQ(session.read_state(name), mean) << name;
      }
    }
  }
}

TEST(Average, LeavesWhatIsNoWeight) {
  const TemporaryFolder folder;
  Session session = small_session();
  const std::vector<fs::path> paths = save_steps(session, folder.path(), 2);
  const auto moments = [&] { return support::state_bytes(session, [](Role role) { return role == Role::optimizer; }); };
  const std::vector<std::byte> before = moments();
  average_snapshots(paths, session);
  EXPECT_EQ(moments(), before);
}

TEST(Average, RefusesBeforeAnythingChanges) {
  const TemporaryFolder folder;
  Session session = small_session();
  std::vector<fs::path> paths = save_steps(session, folder.path(), 2);
  const std::vector<std::byte> before = all_bytes(session);
  const auto refused_with = [&](const fs::path& last) {
    const std::vector<fs::path> some{paths[0], last};
    std::string message = message_of<UserError>([&] { average_snapshots(some, session); });
    EXPECT_EQ(all_bytes(session), before);
    return message;
  };
  std::string bytes = bytes_of(paths[1]);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  support::write_bytes(folder / "damaged", bytes);
  EXPECT_TRUE(mentions(refused_with(folder / "damaged"), {"damaged'", "checksum"}));
  EXPECT_TRUE(mentions(refused_with(folder / "nothing"), {"nothing'"}));
  Session wider = small_session(7, {.channels = 24});
  save_snapshot(folder / "wider", wider, {});
  EXPECT_TRUE(mentions(refused_with(folder / "wider"), {"wider'", "'small'"}));
  Session narrow = small_session(7, {.dtype = DType::bf16});
  save_snapshot(folder / "narrow", narrow, {});
  EXPECT_TRUE(mentions(refused_with(folder / "narrow"), {"narrow'", "BF16", "F32"}));
}

TEST(Average, OfSparseWeightsIsRefused) {
  const TemporaryFolder folder;
  Session session = small_session(7, {.nonzero = 0.3});
  const std::vector<fs::path> paths = save_steps(session, folder.path(), 2);
  EXPECT_TRUE(mentions(message_of<UserError>([&] { average_snapshots(paths, session); }), {"'small'", "sparse", "export"}));
}

TEST(LastSnapshots, AreTheNewestFromTheOldestOn) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "snapshots");
  for (const std::uint64_t step : {90U, 10U, 1000U, 20U}) support::write_bytes(snapshot_path(folder.path(), step), "x");
  const auto last = [&](std::size_t count) { return last_snapshots(folder.path(), count); };
  EXPECT_EQ(last(3), (std::vector<fs::path>{snapshot_path(folder.path(), 20), snapshot_path(folder.path(), 90),
                                            snapshot_path(folder.path(), 1000)}));
  EXPECT_EQ(last(1), (std::vector<fs::path>{snapshot_path(folder.path(), 1000)}));
  EXPECT_TRUE(mentions(message_of<UserError>([&] { last(5); }), {folder.path().string(), "4 snapshots", "5", "--keep 5"}));
}

}  // namespace
}  // namespace snug::train
