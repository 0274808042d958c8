// Runs that the operating system holds to their bytes: it counts what a process maps, and refuses more.
#include <sys/personality.h>
#include <sys/resource.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "run_snug.h"
#include "support/messages.h"
#include "support/sanitized.h"
#include "support/temporary_folder.h"

namespace snug::cli {
namespace {

using Json = nlohmann::json;
using support::kSanitized;
using support::TemporaryFolder;

// One heap for all threads: what glibc reserves for a second one is more than the arena, and nobody uses it.
constexpr const char* kOneHeap = "1";

// Always with the same words and without address randomization: a longer name would shift the heap, and with it a page or two.
Ended train_within(const std::filesystem::path& out, std::int64_t address_space) {
  std::filesystem::remove_all(out);
  return run_snug({"train", "wrn-10-1", "--batch", "100", "--budget", "40MB", "--threads", "1", "--steps", "3", "--costs", "none",
                   "--out", out.string(), "--json"},
                  [&] {
                    setenv("MALLOC_ARENA_MAX", kOneHeap, 1);
                    personality(ADDR_NO_RANDOMIZE);
                    if (address_space == 0) return;
                    const rlimit limit{.rlim_cur = static_cast<rlim_t>(address_space),
                                       .rlim_max = static_cast<rlim_t>(address_space)};
                    setrlimit(RLIMIT_AS, &limit);
                  });
}

std::int64_t number_after(const std::string& text, const std::string& before) {
  const std::size_t at = text.rfind(before);
  return at == std::string::npos ? -1 : std::stoll(text.substr(at + before.size()));
}

TEST(Held, ARunLivesInItsArenaAndOverheadAndDiesOnePageBelowTheArena) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer maps more than any limit";
  const TemporaryFolder folder;
  const auto run = folder / "run";
  const std::int64_t page = sysconf(_SC_PAGESIZE);
  const Ended free = train_within(run, 0);
  ASSERT_EQ(free.exit_code, 0) << free.err;
  const Json result = Json::parse(free.out);
  const auto arena = result["planned_peak_bytes"].get<std::int64_t>();
  ASSERT_LE(arena, 40'000'000);
  ASSERT_EQ(result["measured_peak_bytes"], arena);
  // The overhead: all that the process maps at its fullest beside the arena, which lies in whole pages between two guard pages.
  const std::int64_t mapping = (arena + page - 1) / page * page + 2 * page;
  const std::int64_t overhead = result["peak_mapped_bytes"].get<std::int64_t>() - mapping;
  ASSERT_GT(overhead, 0);

  // Two threads share the heap, and which of them asks first changes how far it grows: a few pages.
  constexpr std::int64_t kSlack = 256 << 10;
  const Ended held = train_within(run, mapping + overhead + kSlack);
  ASSERT_EQ(held.exit_code, 0) << held.err;
  EXPECT_EQ(Json::parse(held.out)["train_loss"], result["train_loss"]);
  EXPECT_EQ(Json::parse(held.out)["measured_peak_bytes"], arena);
  EXPECT_LE(Json::parse(held.out)["peak_mapped_bytes"].get<std::int64_t>(), mapping + overhead + kSlack);

  // Without room for the arena it says what it needs, and ends without a trace. Part of the overhead is mapped before the arena
  // and part behind it, so less and less is allowed until it is the arena that is refused.
  Ended without;
  for (std::int64_t limit = overhead; limit > 0 && without.exit_code != 3; limit -= mapping / 2)
    without = train_within(run, limit);
  ASSERT_EQ(without.exit_code, 3) << without.err;
  EXPECT_TRUE(support::mentions(without.err, {"refuses", std::to_string(arena)})) << without.err;
  EXPECT_EQ(without.err.find('\n'), without.err.size() - 1) << without.err;
  EXPECT_FALSE(std::filesystem::exists(run));
  const std::int64_t needed = number_after(without.err, "or allow ");
  ASSERT_GT(needed, 0) << without.err;
  EXPECT_EQ(needed, number_after(without.err, "has mapped ") + mapping);
  EXPECT_LE(needed, mapping + overhead);

  // The arena is the next thing mapped: with one page less it is refused, with that page it is not.
  const Ended page_less = train_within(run, needed - page);
  EXPECT_EQ(page_less.exit_code, 3) << page_less.err;
  EXPECT_NE(page_less.err.find("refuses an arena"), std::string::npos) << page_less.err;
  const Ended just = train_within(run, needed);
  EXPECT_EQ(just.err.find("refuses an arena"), std::string::npos) << just.err;
}

}  // namespace
}  // namespace snug::cli
