// Weights go to files and come from them in pieces: the heap is never asked for as much as a tensor.
#include <fstream>

#include <gtest/gtest.h>

#include "allocation/counting_heap.h"
#include "backends/cpu/cpu.h"
#include "backends/reference/reference.h"
#include "base/pieces.h"
#include "frontend/graph_builder.h"
#include "plan/compile.h"
#include "support/state_bytes.h"
#include "support/temporary_folder.h"
#include "train/average.h"
#include "train/snapshot.h"
#include "train/weights.h"

namespace snug {

namespace {

struct Setting {
  const char* name;
  DType dtype;
  bool is_reference;
  double nonzero = 1;
};

void PrintTo(const Setting& setting, std::ostream* os) { *os << setting.name; }

// Convolutions of 5.3 MB (in fp32) in the backend's layout, a linear layer of 4.6 MB in logical order.
Plan large_plan(const Backend& backend, const Setting& setting) {
  frontend::GraphBuilder b("large", 2);
  ValueId x = b.images({.channels = 3, .height = 8, .width = 8});
  x = b.conv2d("conv1", x, {.out_channels = 384, .padding = 1});
  x = b.relu("relu1", b.batch_norm("bn1", x));
  x = b.conv2d("conv2", x, {.out_channels = 384, .padding = 1});
  b.softmax_cross_entropy(b.linear("fc", b.global_avg_pool("pool", x), 3000));
  return compile(std::move(b).finish(), backend, {.methods = {.precision = setting.dtype, .nonzero = setting.nonzero}});
}

class WeightsInPieces : public testing::TestWithParam<Setting> {
 protected:
  // The largest call of our own while `f` runs.
  template <typename F>
  static std::int64_t largest_call(F f) {
    allocation::forget_largest();
    f();
    return allocation::heap_use().largest_own;
  }
};

// A piece, and what a vector or a header takes beside it.
constexpr std::int64_t kMost = static_cast<std::int64_t>(kPieceBytes) + 65536;

TEST_P(WeightsInPieces, NothingIsAllocatedThatIsAsLargeAsATensor) {
  if (!allocation::heap_is_counted()) GTEST_SKIP() << "the sanitizer has a heap of its own";
  const Backend backend = GetParam().is_reference ? backends::reference_backend(1) : backends::cpu_backend(1);
  const support::TemporaryFolder folder;
  const Plan plan = large_plan(backend, GetParam());
  std::unique_ptr<train::Session> session;
  EXPECT_LE(largest_call([&] { session = std::make_unique<train::Session>(plan, backend, 1); }), kMost) << "beginning";
  EXPECT_LE(largest_call([&] { train::save_snapshot(folder / "s", *session, {}); }), kMost) << "saving";
  EXPECT_LE(largest_call([&] { train::export_weights(folder / "w", *session); }), kMost) << "exporting";
  ASSERT_GT(std::filesystem::file_size(folder / "w"), 10'000'000U * (bits_per_element(GetParam().dtype) / 8) / 4 * 9 / 10);

  train::Session resumed(plan, backend, 2, train::Start::from_file);
  EXPECT_LE(largest_call([&] { train::load_snapshot(folder / "s", resumed); }), kMost) << "resuming";
  EXPECT_EQ(support::state_bytes(resumed), support::state_bytes(*session));
  const std::vector<std::filesystem::path> snapshots(GetParam().nonzero < 1 ? 1 : 8, folder / "s");
  EXPECT_LE(largest_call([&] { train::average_snapshots(snapshots, resumed); }), kMost) << "averaging";
  EXPECT_EQ(support::state_bytes(resumed), support::state_bytes(*session)) << "eight times the same";
  if (GetParam().nonzero < 1) return;  // dense weights are no sparse model's

  // In other numbers than the model's, too.
  Setting other = GetParam();
  other.dtype = other.dtype == DType::f32 ? DType::f64 : DType::f32;
  const Backend reference = backends::reference_backend(1);
  {
    const train::Session wide(large_plan(reference, other), reference, 3);
    train::export_weights(folder / "v", wide);
  }
  for (const char* file : {"w", "v"}) {
    train::Session tuned(plan, backend, 2, train::Start::from_file);
    EXPECT_LE(largest_call([&] { train::import_weights(folder / file, tuned); }), kMost) << "importing " << file;
  }
}

INSTANTIATE_TEST_SUITE_P(LibraryLayoutsPlainOnesAndSparse, WeightsInPieces,
                         testing::Values(Setting{"cpu_f32", DType::f32, false}, Setting{"cpu_bf16", DType::bf16, false},
                                         Setting{"reference_f32", DType::f32, true}, Setting{"sparse", DType::f32, false, 0.3}),
                         [](const auto& setting) { return std::string(setting.param.name); });

}  // namespace

}  // namespace snug
