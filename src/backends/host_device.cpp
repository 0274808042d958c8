#include "backends/host_device.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "backends/omp_threads.h"
#include "base/error.h"
#include "base/process_memory.h"

namespace snug::backends {

namespace {

constexpr std::byte kMargin{0xC3};

bool all_are(std::span<const std::byte> bytes, std::byte expected) {
  return std::all_of(bytes.begin(), bytes.end(), [&](std::byte b) { return b == expected; });
}

class HostArena : public Arena {
 public:
  HostArena(MemorySpace space, Bytes size);
  ~HostArena() override;
  HostArena(const HostArena&) = delete;
  HostArena& operator=(const HostArena&) = delete;

  bool host_accessible() const override { return true; }
  void write(Bytes offset, std::span<const std::byte> source) override;
  void read(Bytes offset, std::span<std::byte> target) const override;
  void fill_from(Bytes begin, Canary canary) override;
  Bytes high_water_mark(Bytes begin, Canary canary) const override;
  bool margins_untouched() const override;

 private:
  // The bytes of the mapping outside the arena proper, which nothing may write.
  std::span<std::byte> front_margin() const;
  std::span<std::byte> back_margin() const;

  std::byte* mapping_ = nullptr;
  std::size_t mapping_bytes_ = 0;
  std::size_t page_bytes_ = 0;
};

// One sentence about an arena that cannot be allocated. Where the process's address space is limited, it says to the byte how
// much would be enough. A budget is the device's: it does not make the host's arena smaller.
[[noreturn]] void refuse_arena(MemorySpace space, Bytes size, std::size_t mapping_bytes, const char* call, int error) {
  const bool is_device = space == MemorySpace::device;
  const Bytes mapped = mapped_bytes();
  std::string sentence = fmt::format("the operating system refuses an arena of {} bytes{} ({}: {})", size.count(),
                                     is_device ? "" : " for values in host memory", call, std::strerror(error));
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    sentence += fmt::format("; the process has mapped {} of the {} bytes that it may (ulimit -v): {}allow {}", mapped.count(),
                            limit.rlim_cur, is_device ? "give a smaller --budget, or " : "",
                            mapped.count() + static_cast<std::int64_t>(mapping_bytes));
  }
  throw DoesNotFit(sentence);
}

// | guard page | front margin | arena ........ | back margin (< 64 bytes) | guard page |
// The arena ends as close to the rear guard page as its alignment allows, because kernels overrun at the end.
HostArena::HostArena(MemorySpace space, Bytes size) : page_bytes_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
  size_ = size;
  const auto padded = static_cast<std::size_t>(round_up(size, kAlignment).count());
  const std::size_t pages = (padded + page_bytes_ - 1) / page_bytes_ * page_bytes_;
  mapping_bytes_ = pages + 2 * page_bytes_;
  void* mapping = mmap(nullptr, mapping_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) refuse_arena(space, size, mapping_bytes_, "mmap", errno);
  mapping_ = static_cast<std::byte*>(mapping);
  if (pages > 0 && mprotect(mapping_ + page_bytes_, pages, PROT_READ | PROT_WRITE) != 0) {
    const int error = errno;
    munmap(mapping_, mapping_bytes_);
    refuse_arena(space, size, mapping_bytes_, "mprotect", error);
  }
  // Huge pages where the kernel has them: fewer TLB misses. Only whole ones inside the mapping are used, so the arena takes no
  // more bytes; it does not matter if the kernel has none.
  madvise(mapping_ + page_bytes_, pages, MADV_HUGEPAGE);
  data_ = mapping_ + page_bytes_ + pages - padded;
  std::ranges::fill(front_margin(), kMargin);
  std::ranges::fill(back_margin(), kMargin);
}

HostArena::~HostArena() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

std::span<std::byte> HostArena::front_margin() const {
  std::byte* begin = mapping_ + page_bytes_;
  return {begin, static_cast<std::size_t>(data_ - begin)};
}

std::span<std::byte> HostArena::back_margin() const {
  std::byte* begin = data_ + size_.count();
  return {begin, static_cast<std::size_t>(mapping_ + mapping_bytes_ - page_bytes_ - begin)};
}

void HostArena::fill_from(Bytes begin, Canary canary) {
  std::memset(data_ + begin.count(), static_cast<int>(canary), static_cast<std::size_t>((size_ - begin).count()));
}

Bytes HostArena::high_water_mark(Bytes begin, Canary canary) const {
  std::int64_t end = size_.count();
  while (end > begin.count() && data_[end - 1] == static_cast<std::byte>(canary)) --end;
  return Bytes(end);
}

bool HostArena::margins_untouched() const { return all_are(front_margin(), kMargin) && all_are(back_margin(), kMargin); }

void HostArena::write(Bytes offset, std::span<const std::byte> source) {
  if (!source.empty()) std::memcpy(data_ + offset.count(), source.data(), source.size());
}

void HostArena::read(Bytes offset, std::span<std::byte> target) const {
  if (!target.empty()) std::memcpy(target.data(), data_ + offset.count(), target.size());
}

class HostRunner : public SectionRunner {
 public:
  HostRunner(std::vector<std::unique_ptr<BoundKernel>> kernels, int threads) : kernels_(std::move(kernels)), threads_(threads) {}
  void run() override {
    const OmpThreads scope(threads_);
    for (const auto& kernel : kernels_) kernel->run();
  }
  void run_node(std::size_t node) override {
    const OmpThreads scope(threads_);
    kernels_[node]->run();
  }

 private:
  std::vector<std::unique_ptr<BoundKernel>> kernels_;
  int threads_;
};

class HostDevice : public Device {
 public:
  explicit HostDevice(int threads) : threads_(threads) {}
  std::unique_ptr<Arena> make_arena(MemorySpace space, Bytes size) override { return std::make_unique<HostArena>(space, size); }
  std::unique_ptr<SectionRunner> make_runner(std::vector<std::unique_ptr<BoundKernel>> kernels) override {
    return std::make_unique<HostRunner>(std::move(kernels), threads_);
  }

 private:
  int threads_;
};

}  // namespace

std::shared_ptr<Device> host_device(int threads) { return std::make_shared<HostDevice>(threads); }

}  // namespace snug::backends
