#include "train/snapshot.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <limits>
#include <sys/mount.h>
#include <sys/resource.h>

#include <gtest/gtest.h>

#include "base/checksum.h"
#include "base/pieces.h"
#include "io/plan_file.h"
#include "small_session.h"
#include "support/files.h"
#include "support/messages.h"
#include <snug/error.h>

namespace snug::train {

using support::bytes_of;
using support::message_of;
using support::TemporaryFolder;
using support::write_bytes;

namespace {

namespace fs = std::filesystem;

Progress some_progress() {
  return {.epoch = 3,
          .position = 1234,
          .best_metric = 0.1 + 0.2,
          .best_step = 2,
          .last_evaluation = Evaluation{.step = 3, .loss = 0.3 - 0.1, .score = 0.7 + 0.1},
          .measured_peak_bytes = Bytes(123'456),
          .data = data::Description{.name = "photos",
                                    .channels = 3,
                                    .height = 8,
                                    .width = 8,
                                    .classes = 2,
                                    .class_names = {"cat", "d\xFFg"},
                                    .train_examples = 10,
                                    .test_examples = 2,
                                    .mean = {0.1 + 0.2, 2, 3},
                                    .std = {1, 1.5, 1 / 3.0},
                                    .fingerprint = 0xFEDCBA9876543210U},
          .recipe = "model = \"small\"  # \xC3\xA4\n",
          .extras = {{"good_steps", "17"}}};
}

// A snapshot's checksum made right again after a change, so that what stands behind it is tested.
std::string with_right_checksum(std::string bytes) {
  Crc64 checksum;
  checksum.update(std::as_bytes(std::span(bytes).first(bytes.size() - 8)));
  const std::uint64_t value = checksum.value();
  std::memcpy(bytes.data() + bytes.size() - 8, &value, 8);
  return bytes;
}

TEST(Snapshot, WeightsThatAreNotFiniteAreNotSaved) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const double value : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
      const TemporaryFolder folder;
      Session session = small_session(7, {.dtype = dtype});
      const fs::path path = folder / "s.safetensors";
      save_snapshot(path, session, some_progress());
      const std::string before = bytes_of(path);
      std::vector<double> weights = session.read_state("fc.weight");
      weights.back() = value;
      session.write_state("fc.weight", weights);
      EXPECT_TRUE(support::mentions(message_of<NotFinite>([&] { save_snapshot(path, session, some_progress()); }),
                                    {"'fc.weight'", "finite"}));
      EXPECT_EQ(bytes_of(path), before) << "what was good stays";
    }
  }
}

// In pieces or at once, in the backend's layout or not, and larger than a piece.
TEST(Snapshot, PiecesOfAStateAreTheStateInOrder) {
  const Session session = small_session(7, {.channels = 144, .classes = 1000});
  const Program& program = session.plan().program;
  std::vector<std::string> cut;
  for (std::size_t i = 0; i < program.states.size(); ++i) {
    std::vector<std::byte> whole(session.logical_bytes(StateId(i)));
    session.read_logical(StateId(i), whole);
    std::vector<std::byte> joined;
    std::size_t pieces = 0;
    session.read_logical_in_pieces(StateId(i), [&](std::span<const std::byte> piece) {
      EXPECT_LE(piece.size(), kPieceBytes);
      joined.insert(joined.end(), piece.begin(), piece.end());
      ++pieces;
    });
    EXPECT_EQ(joined, whole) << program.states[i].name;
    if (pieces > 1 && program.states[i].role == Role::parameter) cut.push_back(program.states[i].name);
  }
  EXPECT_EQ(cut, (std::vector<std::string>{"conv2.weight", "fc.weight"})) << "746,496 and 576,000 bytes";
}

TEST(Snapshot, ResumedRunHasTheBitsOfOneThatNeverStopped) {
  const TemporaryFolder folder;
  Session whole = small_session();
  for (int i = 0; i < 6; ++i) small_step(whole);

  Session first = small_session();
  first.set_loss_scale(8);  // a power of two: no bit changes
  for (int i = 0; i < 3; ++i) small_step(first);
  save_snapshot(folder / "a", first, some_progress());

  Session second = small_session(/*seed=*/99);  // everything of its own must be replaced
  small_step(second);
  EXPECT_NE(all_bytes(second), all_bytes(first));
  EXPECT_EQ(load_snapshot(folder / "a", second), some_progress());
  EXPECT_EQ(second.counters(), first.counters());
  EXPECT_EQ(second.counters().loss_scale.scale, 8);
  EXPECT_EQ(all_bytes(second), all_bytes(first));
  double last = 0;
  for (int i = 0; i < 3; ++i) last = small_step(second);
  EXPECT_EQ(all_bytes(second), all_bytes(whole));
  EXPECT_EQ(second.step(), 6U);
  EXPECT_GT(last, 0);
}

TEST(Snapshot, SavedPlanIsTheOneItWasMadeWith) {
  const TemporaryFolder folder;
  Session session = small_session();
  save_snapshot(folder / "a", session, {});
  const Backend backend = backends::cpu_backend(1);
  const Plan plan = io::parse_plan(inspect_snapshot(folder / "a").plan);
  EXPECT_EQ(plan.planned_peak_bytes, session.plan().planned_peak_bytes);
  EXPECT_EQ(plan.state_offsets, session.plan().state_offsets);
  EXPECT_EQ(plan.bound_bytes, session.plan().bound_bytes);
  for (std::size_t i = 0; i < plan.sections.size(); ++i) EXPECT_EQ(plan.sections[i].offsets, session.plan().sections[i].offsets);

  Session again(plan, backend, 1);
  load_snapshot(folder / "a", again);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(small_step(again), small_step(session));
  EXPECT_EQ(all_bytes(again), all_bytes(session));
}

TEST(Snapshot, SavingTwiceGivesTheSameBytes) {
  const TemporaryFolder folder;
  Session session = small_session();
  small_step(session);
  save_snapshot(folder / "a", session, some_progress());
  Session other = small_session(1);
  load_snapshot(folder / "a", other);
  save_snapshot(folder / "b", other, some_progress());
  EXPECT_EQ(bytes_of(folder / "a"), bytes_of(folder / "b"));
}

TEST(Snapshot, InspectionSaysWhatIsInIt) {
  const TemporaryFolder folder;
  Session session = small_session(std::numeric_limits<std::uint64_t>::max());
  small_step(session);
  save_snapshot(folder / "a", session, some_progress());
  const SnapshotInfo info = inspect_snapshot(folder / "a");
  EXPECT_EQ(info.model, "small");
  EXPECT_EQ(info.counters, session.counters());
  EXPECT_EQ(info.counters.seed, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(info.progress, some_progress());
  std::vector<std::string> names;
  for (const io::TensorInfo& tensor : info.tensors) names.push_back(tensor.name);
  for (const char* name : {"conv1.weight", "bn1.running_var", "fc.bias"})
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  EXPECT_EQ(std::count_if(names.begin(), names.end(), [](const std::string& n) { return n.find("momentum") != n.npos; }), 7);
}

TEST(Snapshot, DamageAnywhereIsRefusedAndChangesNothing) {
  const TemporaryFolder folder;
  Session session = small_session();
  save_snapshot(folder / "a", session, some_progress());
  const std::string good = bytes_of(folder / "a");
  small_step(session);
  const auto before = all_bytes(session);
  const auto counters = session.counters();
  for (std::size_t at = 0; at < good.size(); at += 64) {
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    write_bytes(folder / "b", damaged);
    EXPECT_THROW(load_snapshot(folder / "b", session), UserError) << "byte " << at;
    write_bytes(folder / "b", good.substr(0, at));
    EXPECT_THROW(load_snapshot(folder / "b", session), UserError) << "cut to " << at;
  }
  write_bytes(folder / "b", good + "x");
  EXPECT_THROW(load_snapshot(folder / "b", session), UserError);
  EXPECT_EQ(all_bytes(session), before);
  EXPECT_EQ(session.counters(), counters);
}

TEST(Snapshot, EveryRefusalIsOneSentenceThatNamesTheFile) {
  const TemporaryFolder folder;
  Session session = small_session();
  save_snapshot(folder / "a", session, {});
  const std::string good = bytes_of(folder / "a");
  const auto message = [&](const std::string& bytes) {
    write_bytes(folder / "b", bytes);
    return message_of<UserError>([&] { load_snapshot(folder / "b", session); });
  };
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string bytes = good;
    EXPECT_EQ(from.size(), to.size());
    bytes.replace(bytes.find(from), from.size(), to);
    return with_right_checksum(bytes);
  };
  const std::string file = "'" + (folder / "b").string() + "'";
  EXPECT_TRUE(support::mentions(message(replaced(R"("snug.format":"1")", R"("snug.format":"2")")), {file, "format", "2", "1"}));
  EXPECT_TRUE(support::mentions(message(replaced(R"("snug.step":"0")", R"("snug.step":"x")")), {file, "'snug.step'", "'x'"}));
  EXPECT_TRUE(support::mentions(message(replaced("snug.checksum", "snug.cheeksum")), {file, "snapshot", "'snug.checksum'"}));
  EXPECT_TRUE(support::mentions(message(replaced("snug.position", "snug.pasition")), {file, "snapshot", "'snug.position'"}));
  EXPECT_TRUE(support::mentions(message(replaced(R"("snug.loss_scale":"1")", R"("snug.loss_scale":"0")")), {"scale", "0"}));
  std::string flipped = good;
  flipped[flipped.size() - 20] ^= 1;
  EXPECT_TRUE(support::mentions(message(flipped), {file, "contents"}));
}

TEST(Snapshot, AnotherModelsSnapshotIsRefused) {
  const TemporaryFolder folder;
  Session session = small_session();
  save_snapshot(folder / "a", session, {});
  const auto message = [&](const SmallModel& model) {
    Session other = small_session(1, model);
    return message_of<UserError>([&] { load_snapshot(folder / "a", other); });
  };
  EXPECT_TRUE(support::mentions(message({.channels = 32}), {"go with", "'small'"}));
  EXPECT_NE(message({.classes = 6}).find("'fc.weight' is [5,16] instead of [6,16] and 3 more"), std::string::npos)
      << message({.classes = 6});
  EXPECT_TRUE(support::mentions(message({.dtype = DType::f64}), {"F32", "session", "F64"}));
}

TEST(Snapshot, LatestGoodPassesOverDamagedOnes) {
  const TemporaryFolder run;
  EXPECT_FALSE(find_latest_good(run.path()).snapshot.has_value());
  fs::create_directory(run / "snapshots");
  Session session = small_session();
  for (int step = 1; step <= 3; ++step) {
    small_step(session);
    save_snapshot(snapshot_path(run.path(), session.step()), session, {});
  }
  write_bytes(run / "snapshots/notes.txt", "not a snapshot");
  write_bytes(snapshot_path(run.path(), 12), "nonsense");
  fs::resize_file(snapshot_path(run.path(), 3), 5000);
  const FoundSnapshot found = find_latest_good(run.path());
  ASSERT_TRUE(found.snapshot.has_value());
  EXPECT_EQ(found.snapshot->counters.step, 2U);
  ASSERT_EQ(found.warnings.size(), 2U);
  EXPECT_NE(found.warnings[0].find("step_000000012"), std::string::npos);
  EXPECT_NE(found.warnings[1].find("step_000000003"), std::string::npos);
}

TEST(Snapshot, NewestAndBestAreKept) {
  const TemporaryFolder run;
  fs::create_directory(run / "snapshots");
  for (const std::uint64_t step : {5U, 10U, 15U, 20U, 1000000000U}) write_bytes(snapshot_path(run.path(), step), "x");
  prune_snapshots(run.path(), 2, 10);
  const auto there = [&](std::uint64_t step) { return fs::exists(snapshot_path(run.path(), step)); };
  EXPECT_FALSE(there(5));
  EXPECT_TRUE(there(10));
  EXPECT_FALSE(there(15));
  EXPECT_TRUE(there(20));
  EXPECT_TRUE(there(1000000000));
  prune_snapshots(run.path(), 0, std::nullopt);
  EXPECT_TRUE(there(1000000000));
  EXPECT_FALSE(there(20));
}

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

// Saves where there is no room for it: what was there before must stay, and nothing beside it.
void expect_old_one_stays(const fs::path& folder, Session& session, const std::string& old_bytes) {
  const std::string message = message_of<UserError>([&] { save_snapshot(folder / "a", session, {}); });
  EXPECT_NE(message.find("full"), std::string::npos) << message;
  EXPECT_NE(message.find(folder.string()), std::string::npos) << message;
  EXPECT_EQ(bytes_of(folder / "a"), old_bytes);
  EXPECT_EQ(files_in(folder), 1U);
}

TEST(Snapshot, FileSizeLimitKeepsTheOldOne) {
  const TemporaryFolder folder;
  Session session = small_session();
  save_snapshot(folder / "a", session, {});
  const std::string old_bytes = bytes_of(folder / "a");
  small_step(session);

  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = old_bytes.size() / 2;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  expect_old_one_stays(folder.path(), session, old_bytes);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  save_snapshot(folder / "a", session, {});
  EXPECT_NE(bytes_of(folder / "a"), old_bytes);
}

TEST(Snapshot, FullDiskKeepsTheOldOne) {
  const TemporaryFolder folder;
  Session session = small_session();
  save_snapshot(folder / "probe", session, {});
  const std::string options = "size=" + std::to_string(fs::file_size(folder / "probe") * 3 / 2);
  fs::remove(folder / "probe");
  if (::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, options.c_str()) != 0)
    GTEST_SKIP() << "a small file system cannot be mounted here";
  save_snapshot(folder / "a", session, {});
  const std::string old_bytes = bytes_of(folder / "a");
  small_step(session);
  expect_old_one_stays(folder.path(), session, old_bytes);
  ::umount2(folder.path().c_str(), MNT_DETACH);
}

TEST(Snapshot, FolderThatIsNotThereIsNamed) {
  const TemporaryFolder folder;
  const Session session = small_session();
  const std::string message = message_of<UserError>([&] { save_snapshot(folder / "none/a", session, {}); });
  EXPECT_TRUE(support::mentions(message,
                                {"'" + (folder / "none/a").string() + "'", "no folder", "'" + (folder / "none").string() + "'"}));
}

}  // namespace

}  // namespace snug::train
