// What a run takes beside its arena: looking for the plan takes no more than training with it.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "run_snug.h"
#include "support/sanitized.h"
#include "support/temporary_folder.h"

namespace snug::cli {
namespace {

using Json = nlohmann::json;

Json train_within_a_budget(const std::filesystem::path& out, const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"train",   "wrn-16-1", "--batch", "100",  "--budget", "1850000", "--threads", "1",
                                     "--steps", "1",        "--costs", "none", "--json",   "--out",   out.string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Ended ended = run_snug(arguments);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  return Json::parse(ended.out);
}

// A search goes through ten models, up to nine sizes of microbatch of each and up to twenty strategies for each of those. All of
// their programs at once would take more than the whole of training does.
TEST(Overhead, ASearchTakesLittleMoreThanTrainingWithWhatItFinds) {
  if (support::kSanitized) GTEST_SKIP() << "a sanitizer's heap is not measured";
  const support::TemporaryFolder folder;
  const Json searched = train_within_a_budget(folder / "searched", {"--allow", "precision,sparse"});
  const Json given = train_within_a_budget(
      folder / "given", {"--microbatch", searched["microbatch"].dump(), "--precision", searched["precision"], "--nonzero",
                         searched["nonzero"].dump(), "--checkpoint", searched["checkpoint"]});
  ASSERT_EQ(searched["precision"], "bf16") << "the budget is for the last models that are looked at";
  ASSERT_LT(searched["nonzero"], 0.5);
  ASSERT_EQ(searched["planned_peak_bytes"], given["planned_peak_bytes"]);
  EXPECT_EQ(searched["train_loss"], given["train_loss"]);
  const auto overhead = [](const Json& run) { return run["process_overhead_bytes"].get<std::int64_t>(); };
  EXPECT_LT(overhead(searched) - overhead(given), 3'000'000) << overhead(searched) << " and " << overhead(given);
}

}  // namespace
}  // namespace snug::cli
