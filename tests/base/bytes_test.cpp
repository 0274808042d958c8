#include "base/bytes.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/messages.h"

namespace snug {
namespace {

TEST(ParseBytes, ReadsEveryUnit) {
  const std::vector<std::pair<std::string, std::int64_t>> cases{{"0", 0},
                                                                {"1000", 1000},
                                                                {"1000B", 1000},
                                                                {"512KB", 512'000},
                                                                {"6.7MB", 6'700'000},
                                                                {"1.5GB", 1'500'000'000},
                                                                {"2KiB", 2048},
                                                                {"6.4MiB", 6'710'886},  // 6710886.4, rounded
                                                                {"1GiB", 1'073'741'824},
                                                                {"1e3", 1000},
                                                                {"1e3KB", 1'000'000},
                                                                {"0.6", 1},
                                                                {"404.8MB", 404'800'000}};
  for (const auto& [text, bytes] : cases) EXPECT_EQ(parse_bytes(text).count(), bytes) << text;
}

TEST(ParseBytes, RefusesWhatIsNoSizeAndSaysWhatIs) {
  for (const std::string text : {"",   " ",  "MB",   "-1",  "-6.7MB", "6.7 MB", "6.7mb", "6.7M",  "6,7MB",   "6.7MBs", "+5",
                                 " 5", "5 ", "0x10", "inf", "-inf",   "nan",    "nanMB", "1e400", "1.2.3MB", "--5"}) {
    try {
      const Bytes bytes = parse_bytes(text);
      ADD_FAILURE() << "'" << text << "' was read as " << bytes.count();
    } catch (const UserError& error) {
      EXPECT_TRUE(support::mentions(error.what(), {"'" + text + "'", "size", "6.7MB", "2^20", "6700000"}));
    }
  }
}

TEST(ParseBytes, RefusesSizesAboveWhatADoubleCounts) {
  EXPECT_EQ(parse_bytes("9007199254740992").count(), 9007199254740992);  // 2^53
  EXPECT_THROW(parse_bytes("9007199254740994"), UserError);
  EXPECT_THROW(parse_bytes("9007200GB"), UserError);
  EXPECT_THROW(parse_bytes("1e300GiB"), UserError);
}

TEST(FormatBytes, CountsExactlyBelowOneKilobyteAndRoundsAbove) {
  EXPECT_EQ(format_bytes(Bytes(0)), "0 B");
  EXPECT_EQ(format_bytes(Bytes(999)), "999 B");
  EXPECT_EQ(format_bytes(Bytes(1000)), "1.00 KB");
  EXPECT_EQ(format_bytes(Bytes(404'800'000)), "404.80 MB");
  EXPECT_EQ(format_bytes(Bytes(2'345'678'901)), "2.35 GB");
  EXPECT_EQ(format_bytes(Bytes(-1500)), "-1.50 KB");
}

TEST(RoundUp, GoesToTheNextMultipleAndStaysOnOne) {
  EXPECT_EQ(round_up(Bytes(0), kAlignment), Bytes(0));
  EXPECT_EQ(round_up(Bytes(1), kAlignment), Bytes(64));
  EXPECT_EQ(round_up(Bytes(64), kAlignment), Bytes(64));
  EXPECT_EQ(round_up(Bytes(65), kAlignment), Bytes(128));
}

TEST(Bytes, ComputesAndCompares) {
  Bytes bytes(10);
  bytes += Bytes(5);
  bytes -= Bytes(1);
  EXPECT_EQ(bytes, Bytes(7) * 2);
  EXPECT_LT(bytes, Bytes(15));
  EXPECT_EQ(Bytes(3) - Bytes(5) + Bytes(2), Bytes());
}

}  // namespace
}  // namespace snug
