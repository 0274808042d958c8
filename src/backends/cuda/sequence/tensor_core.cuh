// What the tiles of attention ask of a GPU: a warp's products of 16-bit matrices, copies into shared memory that arrive later,
// and what threads tell each other. The tests have the same functions on the host (tests/backends/cuda/emulated_block.h).
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "backends/cuda/device_code.cuh"
#include "backends/cuda/sequence/warp.cuh"

namespace snug::backends::cuda {

struct TensorCore {
  __device__ static int thread() { return static_cast<int>(threadIdx.x); }
  __device__ static std::uint32_t block() { return blockIdx.x; }
  // The block's dynamic shared memory.
  template <typename T>
  __device__ static T* shared() {
    extern __shared__ uint4 dynamic_shared[];
    return reinterpret_cast<T*>(dynamic_shared);
  }

  __device__ static void sync() { __syncthreads(); }
  __device__ static void sync_warp() { __syncwarp(); }
  __device__ static float from_lane_xor(float value, int mask) { return __shfl_xor_sync(kAllLanes, value, mask); }
  __device__ static std::uint32_t from_lane_xor(std::uint32_t value, int mask) { return __shfl_xor_sync(kAllLanes, value, mask); }
  __device__ static bool any_of_warp(bool value) { return __any_sync(kAllLanes, value ? 1 : 0) != 0; }

  // 2 to the x, and 0 where that is no normal number.
  __device__ static float exp2(float x) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
  }
  __device__ static float log(float x) { return logf(x); }

  // Four matrices of 8 x 8, whose rows of 16 bytes the lanes name: lanes 0 to 7 those of the first. A lane gets of each matrix
  // two neighbors of row lane / 4; transposed, of column lane / 4.
  template <typename T>
  __device__ static void load_matrices(std::uint32_t (&to)[4], const T* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row)));
  }
  template <typename T>
  __device__ static void load_transposed(std::uint32_t (&to)[4], const T* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row)));
  }

  // sums [16 x 8] += left [16 x 16] * right [16 x 8].
  template <typename T>
  __device__ static void multiply_add(float (&sums)[4], const std::uint32_t (&left)[4], std::uint32_t right0,
                                      std::uint32_t right1) {
    if constexpr (kIsHalf<T>) {
      asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
          : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
          : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
    } else {
      asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
          : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
          : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
    }
  }

  // Two neighbors, the first in the lower half.
  template <typename T>
  __device__ static std::uint32_t pack(float first, float second) {
    if constexpr (kIsHalf<T>) {
      const __half2 pair = __floats2half2_rn(first, second);
      return *reinterpret_cast<const std::uint32_t*>(&pair);
    } else {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
      return *reinterpret_cast<const std::uint32_t*>(&pair);
    }
  }
  // The sum of eight products of neighbors, added to `sum`.
  template <typename T>
  __device__ static float dot8(const T* a, const T* b, float sum) {
    const Pack<T, 8> left = load<8>(a);
    const Pack<T, 8> right = load<8>(b);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum = fmaf(widen(left.at[i]), widen(right.at[i]), sum);
    return sum;
  }

  template <typename T>
  __device__ static void store_pair(T* to, std::uint32_t pair) {
    *reinterpret_cast<std::uint32_t*>(to) = pair;
  }
  template <typename T>
  __device__ static void store16(T* to, const T* from) {
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
  }

  // 16 bytes into shared memory, or zeros; they are there after wait() and sync(). Copies belong to the next commit().
  template <typename T>
  __device__ static void copy16(T* to, const T* from, bool valid) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(valid ? 16 : 0));
  }
  __device__ static void copy4(float* to, const float* from, bool valid) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(to)), "l"(from), "r"(valid ? 4 : 0));
  }
  __device__ static void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
  // Until at most so many of the newest commits are under way.
  template <int Newest>
  __device__ static void wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(Newest) : "memory");
  }

 private:
  template <typename T>
  static constexpr bool kIsHalf = false;

  __device__ static std::uint32_t shared_address(const void* pointer) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
  }
};

template <>
inline constexpr bool TensorCore::kIsHalf<__half> = true;

}  // namespace snug::backends::cuda
