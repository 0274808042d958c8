#include <math_constants.h>

#include "backends/cuda/sparse/code.cuh"
#include "backends/growth.h"
#include "ops/random_draws.h"

// As on the host, in place: survivors are compacted to the left, tensor after tensor, then spread to the right with the new
// values between them, the last tensor first. One block of threads at a time, which reads a step's values before it writes any:
// what is written is never read later, since everything still to be read lies further on.

namespace snug::backends::cuda::launch {

namespace {

// In the scratch, one number per tensor; after them, how many values have survived so far.
struct Numbers {
  std::int64_t* survivors;
  std::int64_t* room;
  std::int64_t* growth;
  std::int64_t* kept;  // one, of all tensors

  Numbers(std::int64_t* memory, std::size_t tensors)
      : survivors(memory), room(memory + tensors), growth(memory + 2 * tensors), kept(memory + 3 * tensors) {}
};

// Overwrites a column.
__device__ inline void replace_column(std::uint32_t* columns, int bits, std::uint32_t k, std::uint32_t column) {
  const std::uint64_t bit = std::uint64_t{k} * static_cast<unsigned>(bits);
  const auto shift = static_cast<unsigned>(bit % 32);
  const std::uint32_t mask = (1U << static_cast<unsigned>(bits)) - 1U;
  atomicAnd(columns + bit / 32, ~(mask << shift));
  if (shift + static_cast<unsigned>(bits) > 32) atomicAnd(columns + bit / 32 + 1, ~(mask >> (32 - shift)));
  put_column(columns, bits, k, column);
}

template <typename T>
__device__ inline std::uint32_t magnitude_bits(T value) {
  return __float_as_uint(fabsf(widen(value)));
}

// The `count` smallest are those below the limit, and that many of those that equal it.
struct Selected {
  std::uint32_t limit;  // of magnitude_bits, which have the order of the magnitudes
  std::int64_t equal;
};

// Radix selection, the highest digits first.
template <typename T>
__device__ Selected select_smallest(const T* values, std::int32_t begin, std::int32_t end, std::int64_t count) {
  if (count == 0) return {0, 0};
  __shared__ unsigned histogram[256];
  std::uint32_t prefix = 0;
  std::int64_t left = count;
  for (int shift = 24; shift >= 0; shift -= 8) {
    for (unsigned i = threadIdx.x; i < 256; i += kWalkers) histogram[i] = 0;
    __syncthreads();
    for (std::int32_t k = begin + static_cast<int>(threadIdx.x); k < end; k += static_cast<int>(kWalkers)) {
      const std::uint32_t bits = magnitude_bits(values[k]);
      if (shift == 24 || bits >> static_cast<unsigned>(shift + 8) == prefix)
        atomicAdd(&histogram[bits >> static_cast<unsigned>(shift) & 0xFFU], 1U);
    }
    __syncthreads();
    unsigned digit = 0;
    while (left > histogram[digit]) left -= histogram[digit++];
    prefix = prefix << 8U | digit;
    __syncthreads();
  }
  return {prefix, left};
}

// Moves a tensor's survivors to those of the tensors before it. Afterwards its rows say where each row's survivors begin; the
// next tensor's first row still says where its values begin.
template <typename T>
__global__ void __launch_bounds__(kWalkers)
    prune_kernel(RewireTensor tensor, RewireOperands operands, RewireConstants constants, Numbers numbers, int number) {
  __shared__ unsigned counts[2][kWalkers / 32];
  auto* values = static_cast<T*>(operands.values);
  std::int32_t* rows = operands.rows + tensor.first_row;
  const std::int32_t begin = rows[0];
  const std::int32_t end = rows[tensor.rows];
  const double threshold = *operands.threshold;
  // Of every tensor its share of the target.
  const std::int64_t share =
      constants.per_tensor ? (constants.target * (end - begin) + constants.nonzeros / 2) / constants.nonzeros : 0;
  const Selected selected = constants.per_tensor ? select_smallest(values, begin, end, share) : Selected{.limit = 0, .equal = 0};
  std::int64_t equal = 0;  // so far
  const auto first_kept = static_cast<std::uint32_t>(*numbers.kept);
  std::uint32_t kept = first_kept;
  std::uint32_t row = 0;  // the first that begins at or after this step's first value
  for (std::int32_t base = begin; base < end; base += static_cast<std::int32_t>(kWalkers)) {
    const std::int32_t k = base + static_cast<std::int32_t>(threadIdx.x);
    const T value = k < end ? values[k] : T{};
    const std::uint32_t column = k < end ? column_at(operands.columns, constants.bits, static_cast<std::uint32_t>(k)) : 0;
    bool stays = k < end;
    if (constants.per_tensor) {
      unsigned total = 0;
      const bool is_equal = stays && magnitude_bits(value) == selected.limit;
      const unsigned rank = rank_in_block(is_equal, counts[0], total);
      if (magnitude_bits(value) < selected.limit || (is_equal && equal + rank < selected.equal)) stays = false;
      equal += total;
    } else if (static_cast<double>(fabsf(widen(value))) < threshold) {
      stays = false;
    }
    unsigned total = 0;
    const std::uint32_t at = kept + rank_in_block(stays, counts[1], total);  // its barrier: all threads have read
    if (stays) {
      values[at] = value;
      replace_column(operands.columns, constants.bits, at, column);
    }
    // Rows that begin in this step, found by all threads together: there may be any number of empty ones.
    __shared__ std::uint32_t ranks[kWalkers];
    ranks[threadIdx.x] = at;
    __syncthreads();
    const std::int32_t step_end = min(base + static_cast<std::int32_t>(kWalkers), end);
    while (true) {
      const std::uint32_t mine = row + threadIdx.x;
      const std::int32_t row_begin = mine < tensor.rows ? rows[mine] : end;
      const bool begins = mine < tensor.rows && row_begin < step_end;
      unsigned found = 0;
      rank_in_block(begins, counts[0], found);
      if (begins) rows[mine] = static_cast<std::int32_t>(ranks[row_begin - base]);
      row += found;
      __syncthreads();
      if (found < kWalkers) break;
    }
    kept += total;
  }
  // Empty rows after the last value.
  for (row += threadIdx.x; row < tensor.rows; row += kWalkers) rows[row] = static_cast<std::int32_t>(kept);
  if (threadIdx.x != 0) return;
  const std::int64_t survivors = kept - first_kept;
  numbers.survivors[number] = survivors;
  numbers.room[number] = std::int64_t{tensor.rows} * tensor.columns - survivors;
  numbers.growth[number] = share;
  *numbers.kept = kept;
}

__global__ void begin_kernel(Numbers numbers) { *numbers.kept = 0; }

__global__ void share_kernel(RewireOperands operands, RewireConstants constants, Numbers numbers, int tensors) {
  const std::int64_t pruned = constants.nonzeros - *numbers.kept;
  if (!constants.per_tensor) {
    GrowthShares{.tensors = tensors, .survivors = numbers.survivors, .room = numbers.room, .growth = numbers.growth}.share(
        pruned);
    *operands.threshold = adapted_threshold(*operands.threshold, pruned, constants.target);
  }
  *operands.pruned = static_cast<double>(pruned);
}

// Rewrites a tensor, the last place first: survivors, and zeros at random empty places.
template <typename T>
__global__ void __launch_bounds__(kWalkers)
    grow_kernel(RewireTensor tensor, RewireOperands operands, RewireConstants constants, Numbers numbers, int number) {
  __shared__ double limit[kWalkers];  // the place is taken when more than this are wanted: ops::takes_place
  __shared__ int source[kWalkers];    // 1 + the survivor's number within the step; 0: empty; -1: new
  __shared__ T moved[kWalkers];
  __shared__ unsigned counts[3][kWalkers / 32];
  const std::uint64_t seed = operands.scalars->seed;
  const std::uint64_t step = operands.scalars->step;
  const std::uint32_t elements = tensor.rows * tensor.columns;
  auto* values = static_cast<T*>(operands.values);
  std::int32_t* rows = operands.rows + tensor.first_row;
  const std::int32_t first_kept = rows[0];
  auto survivors = static_cast<std::int32_t>(numbers.survivors[number]);  // before the step's end
  std::int64_t empty = elements - numbers.survivors[number];              // likewise
  auto wanted = static_cast<double>(numbers.growth[number]);
  auto end = static_cast<std::uint32_t>(rows[tensor.rows]);
  std::uint32_t row_end = tensor.rows;  // rows before it begin before the step's end
  for (std::uint32_t steps = (elements + kWalkers - 1) / kWalkers; steps-- > 0;) {
    const std::uint32_t base = steps * kWalkers;
    const std::uint32_t place = base + threadIdx.x;
    const std::uint32_t count = min(kWalkers, elements - base);
    const bool valid = threadIdx.x < count;
    source[threadIdx.x] = 0;
    // The survivors of this step are the last that are left.
    const std::int32_t survivor = survivors - 1 - static_cast<std::int32_t>(threadIdx.x);
    bool is_here = false;
    std::uint32_t survivor_place = 0;
    if (survivor >= 0) {
      const std::int32_t k = first_kept + survivor;
      std::uint32_t row = 0;
      for (std::uint32_t above = row_end; above - row > 1;) {
        const std::uint32_t middle = (row + above) / 2;
        (rows[middle] <= k ? row : above) = middle;
      }
      survivor_place = row * tensor.columns + column_at(operands.columns, constants.bits, static_cast<std::uint32_t>(k));
      is_here = survivor_place >= base;
      if (is_here) moved[threadIdx.x] = values[k];
    }
    unsigned here = 0;
    rank_in_block(is_here, counts[0], here);  // its barrier: all threads have read, and all sources are 0
    if (is_here) source[survivor_place - base] = 1 + static_cast<int>(threadIdx.x);
    survivors -= static_cast<std::int32_t>(here);
    __syncthreads();
    const bool is_empty = valid && source[threadIdx.x] == 0;
    unsigned empty_here = 0;
    // Of the empty places, those up to this one are not yet decided.
    const unsigned before = rank_in_block(is_empty, counts[1], empty_here);
    empty -= empty_here;
    limit[threadIdx.x] = CUDART_INF;
    if (is_empty) {
      const std::uint32_t word = ops::rewire_word(seed, step, tensor.first_place + place);
      limit[threadIdx.x] = uniform_unit(word) * static_cast<double>(empty + before + 1);
    }
    __syncthreads();
    if (threadIdx.x == 0 && wanted > 0) {
      for (std::uint32_t i = count; i-- > 0;) {
        const bool takes = limit[i] < wanted;
        if (takes) source[i] = -1;
        wanted -= takes ? 1.0 : 0.0;
      }
    }
    __syncthreads();
    const int mine = valid ? source[threadIdx.x] : 0;
    unsigned total = 0;
    const unsigned rank = rank_in_block(mine != 0, counts[2], total);
    end -= total;
    if (valid && place % tensor.columns == 0) rows[place / tensor.columns] = static_cast<std::int32_t>(end + rank);
    if (mine != 0) {
      values[end + rank] = mine > 0 ? moved[mine - 1] : narrow<T>(0.0F);
      replace_column(operands.columns, constants.bits, end + rank, place % tensor.columns);
    }
    // Rows that begin in this step have been written; what is left to read lies before them, or in the one that reaches into it.
    row_end = (base + tensor.columns - 1) / tensor.columns;
    __syncthreads();
  }
}

}  // namespace

std::size_t rewire_scratch(std::size_t tensors) { return (3 * tensors + 1) * sizeof(std::int64_t); }

template <typename T>
void sparse_rewire(cudaStream_t stream, std::span<const RewireTensor> tensors, const RewireOperands& operands,
                   const RewireConstants& constants, std::byte* scratch) {
  const Numbers numbers(reinterpret_cast<std::int64_t*>(scratch), tensors.size());
  begin_kernel<<<1, 1, 0, stream>>>(numbers);
  check_launch("begin_kernel");
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    prune_kernel<T><<<1, kWalkers, 0, stream>>>(tensors[t], operands, constants, numbers, static_cast<int>(t));
    check_launch("prune_kernel");
  }
  share_kernel<<<1, 1, 0, stream>>>(operands, constants, numbers, static_cast<int>(tensors.size()));
  check_launch("share_kernel");
  for (std::size_t t = tensors.size(); t-- > 0;) {
    grow_kernel<T><<<1, kWalkers, 0, stream>>>(tensors[t], operands, constants, numbers, static_cast<int>(t));
    check_launch("grow_kernel");
  }
}

template void sparse_rewire<float>(cudaStream_t, std::span<const RewireTensor>, const RewireOperands&, const RewireConstants&,
                                   std::byte*);
template void sparse_rewire<__half>(cudaStream_t, std::span<const RewireTensor>, const RewireOperands&, const RewireConstants&,
                                    std::byte*);
template void sparse_rewire<__nv_bfloat16>(cudaStream_t, std::span<const RewireTensor>, const RewireOperands&,
                                           const RewireConstants&, std::byte*);

}  // namespace snug::backends::cuda::launch
