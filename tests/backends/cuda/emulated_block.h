// A block of a GPU's threads on the host, for code written over `Machine` (src/backends/cuda/sequence/tensor_core.cuh): each
// thread is a context of its own, and what a warp does together is done when its 32 threads have come to it. Whatever was not
// written is NaN; a copy into shared memory leaves NaN until it is waited for. Threads run in a given order between the points at
// which they wait for each other, so that a missing barrier shows as other results of another order.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <ucontext.h>
#include <vector>

#include "base/half.h"

namespace snug::emulation {

struct Half {
  std::uint16_t bits = 0;
  static std::uint16_t bits_of(double value) { return half_from_double(value); }
  float widened() const { return float_from_half(bits); }
};
struct Bfloat {
  std::uint16_t bits = 0;
  static std::uint16_t bits_of(double value) { return bfloat_from_double(value); }
  float widened() const { return float_from_bfloat(bits); }
};

enum class Order { ascending, descending };

class Block {
 public:
  Block(int threads, std::size_t shared_bytes, Order order)
      : shared_(shared_bytes + kGuardBytes), shared_bytes_(shared_bytes), fibers_(static_cast<std::size_t>(threads)) {
    for (int i = 0; i < threads; ++i) order_.push_back(order == Order::ascending ? i : threads - 1 - i);
    for (Fiber& fiber : fibers_) fiber.stack = std::make_unique_for_overwrite<std::byte[]>(kStackBytes);
  }

  // Runs `body` in every thread of block `number`.
  void run(std::uint32_t number, const std::function<void()>& body) {
    number_ = number;
    body_ = &body;
    current_ = this;
    std::ranges::fill(shared_, std::byte{0xFF});
    warps_.assign(fibers_.size() / 32, {});
    barrier_ = {};
    for (Fiber& fiber : fibers_) start(fiber);
    for (std::size_t left = fibers_.size(); left > 0;) {
      const std::size_t before = steps_;
      for (const int thread : order_) {
        Fiber& fiber = of(thread);
        if (fiber.is_done) continue;
        thread_ = thread;
        swapcontext(&main_, &fiber.context);
        if (fiber.is_done) {
          --left;
          ++steps_;
        }
      }
      require(steps_ != before, "threads wait for others that do not come");
    }
    for (std::size_t i = shared_bytes_; i < shared_.size(); ++i)
      require(shared_[i] == std::byte{0xFF}, "a write beyond the shared memory");
  }

  static Block& current() { return *current_; }
  int thread() const { return thread_; }
  std::uint32_t number() const { return number_; }
  std::byte* shared() { return shared_.data(); }

  void sync() {
    const std::size_t generation = barrier_.generation;
    ++steps_;
    if (++barrier_.arrived == fibers_.size()) {
      barrier_.arrived = 0;
      ++barrier_.generation;
    }
    while (barrier_.generation == generation) yield();
  }

  // What a lane gives to and gets from something that its warp does together.
  struct Lane {
    std::uint32_t given[6] = {}, got[4] = {};
    float sums[4] = {};
    const void* row = nullptr;
  };
  enum class Kind { sync, shuffle, vote, matrices, product };

  template <typename Compute>
  Lane together(Kind kind, const Lane& lane, const Compute& compute) {
    Warp& warp = warps_[static_cast<std::size_t>(thread_) / 32];
    const auto number = of(thread_).meetings++;
    Meeting& meeting = warp.meetings[number % 2];
    const auto place = static_cast<std::size_t>(thread_) % 32;
    if (meeting.arrived == 0) meeting.kind = kind;
    require(meeting.kind == kind, "the threads of a warp do different things together");
    meeting.lanes[place] = lane;
    ++steps_;
    if (++meeting.arrived == 32) {
      compute(meeting.lanes);
      meeting.arrived = 0;
      meeting.finished = number + 1;
    }
    while (meeting.finished < number + 1) yield();
    return meeting.lanes[place];
  }

  void copy(void* to, const void* from, std::size_t bytes, bool valid) {
    std::memset(to, 0xFF, bytes);
    of(thread_).copies.push_back({to, from, bytes, valid, of(thread_).commits});
  }
  void commit() { ++of(thread_).commits; }
  void wait(int newest) {
    Fiber& fiber = of(thread_);
    std::erase_if(fiber.copies, [&](const Copy& copy) {
      if (copy.commit + newest >= fiber.commits) return false;
      copy.valid ? std::memcpy(copy.to, copy.from, copy.bytes) : std::memset(copy.to, 0, copy.bytes);
      return true;
    });
  }

 private:
  static constexpr std::size_t kStackBytes = 256 * 1024;
  static constexpr std::size_t kGuardBytes = 256;

  struct Copy {
    void* to;
    const void* from;
    std::size_t bytes;
    bool valid;
    int commit;
  };
  struct Fiber {
    ucontext_t context = {};
    std::unique_ptr<std::byte[]> stack;
    bool is_done = false;
    std::size_t meetings = 0;
    std::vector<Copy> copies;
    int commits = 0;
  };
  struct Meeting {
    Kind kind = Kind::sync;
    int arrived = 0;
    std::size_t finished = 0;
    Lane lanes[32];
  };
  struct Warp {
    Meeting meetings[2];
  };
  struct Barrier {
    std::size_t arrived = 0, generation = 0;
  };

  void start(Fiber& fiber) {
    fiber.is_done = false;
    fiber.meetings = 0;
    fiber.copies.clear();
    fiber.commits = 0;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = &main_;
    makecontext(&fiber.context, &Block::enter, 0);
  }
  static void enter() {
    (*current_->body_)();
    current_->of(current_->thread_).is_done = true;
  }
  Fiber& of(int thread) { return fibers_[static_cast<std::size_t>(thread)]; }
  void yield() {
    const int thread = thread_;
    swapcontext(&of(thread).context, &main_);
    thread_ = thread;
  }
  static void require(bool holds, const char* rule) {
    if (holds) return;
    std::fprintf(stderr, "emulated block: %s\n", rule);
    std::abort();
  }

  static inline Block* current_ = nullptr;
  std::vector<std::byte> shared_;
  std::size_t shared_bytes_;
  std::vector<Fiber> fibers_;
  std::vector<int> order_;
  std::vector<Warp> warps_;
  Barrier barrier_;
  ucontext_t main_ = {};
  const std::function<void()>* body_ = nullptr;
  std::uint32_t number_ = 0;
  int thread_ = 0;
  std::size_t steps_ = 0;
};

struct EmulatedCore {
  static int thread() { return Block::current().thread(); }
  static std::uint32_t block() { return Block::current().number(); }
  template <typename T>
  static T* shared() {
    return reinterpret_cast<T*>(Block::current().shared());
  }

  static void sync() { Block::current().sync(); }
  static void sync_warp() {
    Block::current().together(Block::Kind::sync, {}, [](auto&) {});
  }
  static std::uint32_t from_lane_xor(std::uint32_t value, int mask) {
    Block::Lane lane;
    lane.given[0] = value;
    lane.given[1] = static_cast<std::uint32_t>(mask);
    return Block::current()
        .together(Block::Kind::shuffle, lane,
                  [](auto& lanes) {
                    for (std::uint32_t i = 0; i < 32; ++i) lanes[i].got[0] = lanes[i ^ lanes[i].given[1]].given[0];
                  })
        .got[0];
  }
  static float from_lane_xor(float value, int mask) {
    return std::bit_cast<float>(from_lane_xor(std::bit_cast<std::uint32_t>(value), mask));
  }
  static bool any_of_warp(bool value) {
    Block::Lane lane;
    lane.given[0] = value ? 1 : 0;
    const auto vote = [](auto& lanes) {
      std::uint32_t any = 0;
      for (const Block::Lane& one : lanes) any |= one.given[0];
      for (Block::Lane& one : lanes) one.got[0] = any;
    };
    return Block::current().together(Block::Kind::vote, lane, vote).got[0] != 0;
  }

  static float exp2(float x) {
    const float result = std::exp2(x);
    return result < std::numeric_limits<float>::min() ? 0.0F : result;
  }
  static float log(float x) { return std::log(x); }

  template <typename T>
  static void load_matrices(std::uint32_t (&to)[4], const T* row) {
    load<T>(to, row, false);
  }
  template <typename T>
  static void load_transposed(std::uint32_t (&to)[4], const T* row) {
    load<T>(to, row, true);
  }

  template <typename T>
  static void multiply_add(float (&sums)[4], const std::uint32_t (&left)[4], std::uint32_t right0, std::uint32_t right1) {
    Block::Lane lane;
    for (int i = 0; i < 4; ++i) {
      lane.given[i] = left[i];
      lane.sums[i] = sums[i];
    }
    lane.given[4] = right0;
    lane.given[5] = right1;
    const Block::Lane result = Block::current().together(Block::Kind::product, lane, multiply<T>);
    for (int i = 0; i < 4; ++i) sums[i] = result.sums[i];
  }

  template <typename T>
  static std::uint32_t pack(float first, float second) {
    return std::uint32_t{T::bits_of(double{first})} | std::uint32_t{T::bits_of(double{second})} << 16U;
  }
  template <typename T>
  static float dot8(const T* a, const T* b, float sum) {
    for (int i = 0; i < 8; ++i) sum = std::fmaf(a[i].widened(), b[i].widened(), sum);
    return sum;
  }
  template <typename T>
  static void store_pair(T* to, std::uint32_t pair) {
    to[0].bits = static_cast<std::uint16_t>(pair);
    to[1].bits = static_cast<std::uint16_t>(pair >> 16U);
  }
  template <typename T>
  static void store16(T* to, const T* from) {
    require_aligned(to, 16);
    require_aligned(from, 16);
    std::memcpy(to, from, 16);
  }
  template <typename T>
  static void copy16(T* to, const T* from, bool valid) {
    require_aligned(to, 16);
    require_aligned(from, 16);
    Block::current().copy(to, from, 16, valid);
  }
  static void copy4(float* to, const float* from, bool valid) { Block::current().copy(to, from, 4, valid); }
  static void commit() { Block::current().commit(); }
  template <int Newest>
  static void wait() {
    Block::current().wait(Newest);
  }

 private:
  static void require_aligned(const void* pointer, std::uintptr_t bytes) {
    if (reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0) return;
    std::fprintf(stderr, "emulated block: an address is not a multiple of %d\n", static_cast<int>(bytes));
    std::abort();
  }
  template <typename T>
  static void load(std::uint32_t (&to)[4], const T* row, bool transposed) {
    require_aligned(row, 16);
    Block::Lane lane;
    lane.row = row;
    lane.given[0] = transposed ? 1 : 0;
    const Block::Lane result = Block::current().together(Block::Kind::matrices, lane, read_matrices<T>);
    for (int i = 0; i < 4; ++i) to[i] = result.got[i];
  }
  // "Warp-level matrix load instruction: ldmatrix" of the PTX reference.
  template <typename T>
  static void read_matrices(Block::Lane (&lanes)[32]) {
    const bool transposed = lanes[0].given[0] != 0;
    for (std::size_t lane = 0; lane < 32; ++lane) {
      for (std::size_t m = 0; m < 4; ++m) {
        std::uint32_t pair[2];
        for (std::size_t i = 0; i < 2; ++i) {
          const std::size_t down = transposed ? lane % 4 * 2 + i : lane / 4, across = transposed ? lane / 4 : lane % 4 * 2 + i;
          pair[i] = static_cast<const T*>(lanes[m * 8 + down].row)[across].bits;
        }
        lanes[lane].got[m] = pair[0] | pair[1] << 16U;
      }
    }
  }
  // "Matrix fragments for mma.m16n8k16 with floating point type" of the PTX reference.
  template <typename T>
  static void multiply(Block::Lane (&lanes)[32]) {
    const auto half_of = [](std::uint32_t pair, std::size_t i) {
      return double{T{static_cast<std::uint16_t>(pair >> (16U * i))}.widened()};
    };
    double left[16][16], right[16][8];
    for (std::size_t lane = 0; lane < 32; ++lane) {
      const std::size_t g = lane / 4, t = lane % 4;
      for (std::size_t i = 0; i < 8; ++i) {
        const std::size_t row = g + (i / 2 % 2) * 8, column = t * 2 + i % 2 + (i / 4) * 8;
        left[row][column] = half_of(lanes[lane].given[i / 2], i % 2);
      }
      for (std::size_t i = 0; i < 4; ++i) right[t * 2 + i % 2 + i / 2 * 8][g] = half_of(lanes[lane].given[4 + i / 2], i % 2);
    }
    for (std::size_t lane = 0; lane < 32; ++lane) {
      for (std::size_t i = 0; i < 4; ++i) {
        const std::size_t row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        double sum = double{lanes[lane].sums[i]};
        for (std::size_t k = 0; k < 16; ++k) sum += left[row][k] * right[k][column];
        lanes[lane].sums[i] = static_cast<float>(sum);
      }
    }
  }
};

}  // namespace snug::emulation
