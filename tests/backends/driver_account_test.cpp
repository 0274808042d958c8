#include "backends/driver_account.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace snug::backends {
namespace {

constexpr std::uint32_t kOurPid = 4711;

// A driver whose answers a test sets.
struct FakeDriver {
  bool has_device = true;
  unsigned long long used = 0;
  std::vector<Nvml::Process> processes;
  int refuse_processes = Nvml::kSuccess;
};
FakeDriver driver;

Nvml fake_nvml() {
  driver = {};
  return {.find_device =
              [](const char* /*bus*/, Nvml::Device* device) {
                *device = &driver;
                return driver.has_device ? Nvml::kSuccess : 6;
              },
          .memory =
              [](Nvml::Device /*device*/, Nvml::Memory* memory) {
                *memory = {.total = 1'000'000, .free = 1'000'000 - driver.used, .used = driver.used};
                return Nvml::kSuccess;
              },
          .processes =
              [](Nvml::Device /*device*/, unsigned int* count, Nvml::Process* processes) {
                if (driver.refuse_processes != Nvml::kSuccess) return driver.refuse_processes;
                const unsigned int room = *count;
                *count = static_cast<unsigned int>(driver.processes.size());
                if (room < driver.processes.size()) return Nvml::kInsufficientSize;
                std::ranges::copy(driver.processes, processes);
                return Nvml::kSuccess;
              }};
}

Nvml::Process process(std::uint32_t pid, unsigned long long bytes) { return {.pid = pid, .used_bytes = bytes}; }

TEST(DriverAccount, CountsWhatTheDriverListsForThisProcess) {
  const DriverAccount account(fake_nvml(), "0000:01:00.0", kOurPid);
  driver.processes = {process(1, 500), process(kOurPid, 70), process(2, 900)};
  driver.used = 5000;
  const auto memory = account.read();
  ASSERT_TRUE(memory.has_value());
  EXPECT_EQ(memory->bytes.count(), 70);
  EXPECT_EQ(memory->counted, DriverMemory::Counted::for_process);
}

TEST(DriverAccount, EveryInstanceOfAGpuThatTheProcessUsesCounts) {
  const DriverAccount account(fake_nvml(), "0000:01:00.0", kOurPid);
  driver.processes = {process(kOurPid, 70), process(kOurPid, 30)};
  EXPECT_EQ(account.of_process(), Bytes(100));
}

TEST(DriverAccount, AsksAgainWithMoreRoomWhenManyProcessesShareTheDevice) {
  const DriverAccount account(fake_nvml(), "0000:01:00.0", kOurPid);
  for (std::uint32_t pid = 1; pid <= 100; ++pid) driver.processes.push_back(process(pid, pid));
  driver.processes.push_back(process(kOurPid, 4096));
  EXPECT_EQ(account.of_process(), Bytes(4096));
}

TEST(DriverAccount, ProcessThatIsNotListedIsCountedByTheGrowthOfTheDevice) {
  const Nvml nvml = fake_nvml();
  driver.used = 3000;
  const DriverAccount account(nvml, "0000:01:00.0", kOurPid);
  driver.used = 3500;
  for (const auto& others : {std::vector<Nvml::Process>{}, {process(1, 500)}, {process(kOurPid, Nvml::kNotAvailable)}}) {
    driver.processes = others;
    const auto memory = account.read();
    ASSERT_TRUE(memory.has_value());
    EXPECT_EQ(memory->bytes.count(), 500);
    EXPECT_EQ(memory->counted, DriverMemory::Counted::as_device_growth);
  }
  driver.refuse_processes = 999;
  EXPECT_EQ(account.read()->bytes.count(), 500);
}

TEST(DriverAccount, MemoryThatOthersGaveBackIsNotCountedBelowZero) {
  const Nvml nvml = fake_nvml();
  driver.used = 3000;
  const DriverAccount account(nvml, "0000:01:00.0", kOurPid);
  driver.used = 1000;
  EXPECT_EQ(account.device_growth(), Bytes(0));
}

TEST(DriverAccount, SaysNothingWithoutTheLibraryOrTheDevice) {
  EXPECT_FALSE(DriverAccount(std::nullopt, "0000:01:00.0", kOurPid).read().has_value());
  const Nvml nvml = fake_nvml();
  driver.has_device = false;
  EXPECT_FALSE(DriverAccount(nvml, "0000:01:00.0", kOurPid).read().has_value());
}

}  // namespace
}  // namespace snug::backends
