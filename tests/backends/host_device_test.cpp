#include "backends/host_device.h"

#include <cstring>

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/messages.h"

namespace snug {

namespace {

std::unique_ptr<Arena> arena_of(std::int64_t size) {
  return backends::host_device(1)->make_arena(MemorySpace::device, Bytes(size));
}

TEST(HostArena, StartsOnTheAlignmentWhateverItsSize) {
  for (const std::int64_t size : {1, 63, 64, 65, 4096, 4097, 1'000'003}) {
    const auto arena_owner = arena_of(size);
    Arena& arena = *arena_owner;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena.data()) % 64, 0U) << size;
    EXPECT_EQ(arena.size().count(), size);
    std::memset(arena.data(), 0, static_cast<std::size_t>(size));
    EXPECT_TRUE(arena.margins_untouched()) << size;
  }
}

TEST(HostArena, NoticesOneByteBehindItsEndAndBeforeItsStart) {
  const auto behind_owner = arena_of(100);
  Arena& behind = *behind_owner;
  behind.data()[100] = std::byte{1};
  EXPECT_FALSE(behind.margins_untouched());
  const auto before_owner = arena_of(100);
  Arena& before = *before_owner;
  before.data()[-1] = std::byte{1};
  EXPECT_FALSE(before.margins_untouched());
}

TEST(HostArenaDeathTest, AGuardPageStopsAWriteFurtherOut) {
  const auto arena_owner = arena_of(4096);
  Arena& arena = *arena_owner;
  EXPECT_DEATH(arena.data()[4096] = std::byte{1}, "");
  EXPECT_DEATH(arena.data()[-1] = std::byte{1}, "");
}

TEST(HostArena, HighWaterMarkIsOnePastTheLastChangedByte) {
  const auto arena_owner = arena_of(1000);
  Arena& arena = *arena_owner;
  arena.fill_from(Bytes(100), Arena::Canary::plain);
  EXPECT_EQ(arena.high_water_mark(Bytes(100), Arena::Canary::plain), Bytes(100));
  arena.data()[99] = std::byte{1};  // below the watched region
  EXPECT_EQ(arena.high_water_mark(Bytes(100), Arena::Canary::plain), Bytes(100));
  arena.data()[500] = std::byte{1};
  EXPECT_EQ(arena.high_water_mark(Bytes(100), Arena::Canary::plain), Bytes(501));
  arena.data()[999] = std::byte{1};
  EXPECT_EQ(arena.high_water_mark(Bytes(100), Arena::Canary::plain), Bytes(1000));
}

TEST(HostArena, AByteWrittenWithOneCanarysValueShowsUnderTheOther) {
  const auto arena_owner = arena_of(64);
  Arena& arena = *arena_owner;
  for (const auto canary : {Arena::Canary::plain, Arena::Canary::inverted}) {
    arena.fill_from(Bytes(0), canary);
    arena.data()[63] = static_cast<std::byte>(Arena::Canary::plain);
    EXPECT_EQ(arena.high_water_mark(Bytes(0), canary), Bytes(canary == Arena::Canary::plain ? 0 : 64));
  }
}

TEST(HostArena, RefusesWhatTheOperatingSystemDoesNotHave) { EXPECT_THROW(arena_of(std::int64_t{1} << 60U), DoesNotFit); }

TEST(HostArena, ARefusalNamesTheMemory) {
  const auto refusal = [](MemorySpace space) -> std::string {
    try {
      backends::host_device(1)->make_arena(space, Bytes(std::int64_t{1} << 60U));
    } catch (const DoesNotFit& refused) {
      return refused.what();
    }
    return "";
  };
  EXPECT_TRUE(support::mentions(refusal(MemorySpace::device), {"refuses", "1152921504606846976"}));
  EXPECT_TRUE(support::mentions(refusal(MemorySpace::host), {"1152921504606846976", "host"}));
}

TEST(HostArena, MayBeEmpty) {
  const auto arena_owner = arena_of(0);
  Arena& arena = *arena_owner;
  EXPECT_TRUE(arena.margins_untouched());
}

}  // namespace

}  // namespace snug
