#include <algorithm>
#include <math_constants.h>

#include "backends/cuda/sparse_code.cuh"
#include "backends/growth.h"
#include "ops/random_draws.h"

// As on the host, tensor by tensor, but not in place: survivors wait in the scratch, then each tensor is walked
// backwards while the store is written anew. A block a tensor.

namespace snug::backends::cuda::launch {

namespace {

constexpr std::size_t kMostTensors = 64;
struct RewireTensors {
  RewireTensor at[kMostTensors];
  int first;  // of all, the first of these
};

// Where things lie in the scratch. Survivors stand where their tensor's values began.
struct Scratch {
  std::uint32_t* columns;  // of the survivors, packed like the store's
  std::int32_t* rows;      // where each row's survivors begin
  void* values;
  // A number for each tensor.
  std::int64_t* survivors;
  std::int64_t* room;
  std::int64_t* growth;
  std::int64_t* old_begin;
  std::int64_t* new_begin;
};

std::size_t on_boundary(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

Scratch cut(std::byte* memory, std::size_t tensors, const RewireConstants& constants, void* momentum) {
  const auto take = [&](std::size_t bytes) {
    std::byte* piece = memory;
    memory += on_boundary(bytes);
    return piece;
  };
  const auto numbers = [&] { return reinterpret_cast<std::int64_t*>(take(tensors * sizeof(std::int64_t))); };
  Scratch scratch{};
  scratch.columns = reinterpret_cast<std::uint32_t*>(take(constants.column_bytes));
  scratch.rows = reinterpret_cast<std::int32_t*>(take(constants.all_rows * sizeof(std::int32_t)));
  scratch.survivors = numbers();
  scratch.room = numbers();
  scratch.growth = numbers();
  scratch.old_begin = numbers();
  scratch.new_begin = numbers();
  scratch.values = momentum != nullptr ? momentum : memory;
  return scratch;
}

// The last of the rows that begin at or before k: its own, where it is one of theirs.
__device__ inline std::uint32_t row_of(const std::int32_t* rows, std::uint32_t count, std::int32_t k) {
  std::uint32_t row = 0;
  for (std::uint32_t above = count; above - row > 1;) {
    const std::uint32_t middle = (row + above) / 2;
    (rows[middle] <= k ? row : above) = middle;
  }
  return row;
}

template <typename T>
__device__ inline std::uint32_t magnitude_bits(T value) {
  return __float_as_uint(fabsf(widen(value)));
}

// The `count` smallest are those below the limit, and so many of those that equal it.
struct Selected {
  std::uint32_t limit;  // of magnitude_bits, which rise with the magnitudes
  std::int64_t equal;
};

// By the digits, the highest first.
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

// Notes the survivors of a tensor, and how many they are.
template <typename T>
__global__ void __launch_bounds__(kWalkers)
    prune_kernel(RewireTensors tensors, RewireOperands operands, RewireConstants constants, Scratch scratch) {
  __shared__ unsigned counts[2][kWalkers / 32];
  const RewireTensor& tensor = tensors.at[blockIdx.x];
  const auto* values = static_cast<const T*>(operands.values);
  auto* kept_values = static_cast<T*>(scratch.values);
  const std::int32_t* rows = operands.rows + tensor.first_row;
  std::int32_t* kept_rows = scratch.rows + tensor.first_row;
  const std::int32_t begin = rows[0];
  const std::int32_t end = rows[tensor.rows];
  const double threshold = *operands.threshold;
  // Of every tensor its share of the target.
  const std::int64_t share =
      constants.per_tensor ? (constants.target * (end - begin) + constants.nonzeros / 2) / constants.nonzeros : 0;
  const Selected selected = constants.per_tensor ? select_smallest(values, begin, end, share) : Selected{.limit = 0, .equal = 0};
  std::int64_t equal = 0;  // so far
  std::uint32_t kept = static_cast<std::uint32_t>(begin);
  for (std::int32_t base = begin; base < end; base += static_cast<std::int32_t>(kWalkers)) {
    const std::int32_t k = base + static_cast<std::int32_t>(threadIdx.x);
    bool stays = k < end;
    if (constants.per_tensor) {
      const std::uint32_t bits = stays ? magnitude_bits(values[k]) : 0;
      unsigned total = 0;
      const bool is_equal = stays && bits == selected.limit;
      const unsigned rank = rank_in_block(is_equal, counts[0], total);
      if (stays && (bits < selected.limit || (is_equal && equal + rank < selected.equal))) stays = false;
      equal += total;
    } else if (stays) {
      stays = !(static_cast<double>(fabsf(widen(values[k]))) < threshold);
    }
    unsigned total = 0;
    const std::uint32_t at = kept + rank_in_block(stays, counts[1], total);
    if (k < end) {
      std::uint32_t row = row_of(rows, tensor.rows, k);
      // Its row begins here, and so do the empty ones before it.
      for (; rows[row] == k; --row) {
        kept_rows[row] = static_cast<std::int32_t>(at);
        if (row == 0) break;
      }
    }
    if (stays) {
      put_column(scratch.columns, constants.bits, at, column_at(operands.columns, constants.bits, static_cast<std::uint32_t>(k)));
      kept_values[at] = values[k];
    }
    kept += total;
    __syncthreads();
  }
  for (std::uint32_t row = threadIdx.x; row < tensor.rows; row += kWalkers) {
    if (rows[row] == end) kept_rows[row] = static_cast<std::int32_t>(kept);
  }
  if (threadIdx.x != 0) return;
  const int t = tensors.first + static_cast<int>(blockIdx.x);
  const std::int64_t survivors = kept - static_cast<std::uint32_t>(begin);
  scratch.old_begin[t] = begin;
  scratch.survivors[t] = survivors;
  scratch.room[t] = std::int64_t{tensor.rows} * tensor.columns - survivors;
  scratch.growth[t] = share;
}

__global__ void share_kernel(RewireOperands operands, RewireConstants constants, Scratch scratch, int tensors) {
  const double threshold = *operands.threshold;
  std::int64_t survivors = 0;
  for (int t = 0; t < tensors; ++t) survivors += scratch.survivors[t];
  const std::int64_t pruned = constants.nonzeros - survivors;
  if (!constants.per_tensor) {
    GrowthShares{.tensors = tensors, .survivors = scratch.survivors, .room = scratch.room, .growth = scratch.growth}.share(
        pruned);
  }
  std::int64_t begin = 0;
  for (int t = 0; t < tensors; ++t) {
    scratch.new_begin[t] = begin;
    begin += scratch.survivors[t] + scratch.growth[t];
  }
  *operands.new_threshold = constants.per_tensor ? threshold : adapted_threshold(threshold, pruned, constants.target);
  *operands.pruned = static_cast<double>(pruned);
}

// Writes a tensor anew, the last place first: survivors, and zeros at random empty places.
template <typename T>
__global__ void __launch_bounds__(kWalkers)
    grow_kernel(RewireTensors tensors, RewireOperands operands, RewireConstants constants, Scratch scratch) {
  constexpr int kEmpty = -2;
  constexpr int kNew = -1;
  __shared__ double limit[kWalkers];  // the place is taken when more than this are wanted: ops::takes_place
  __shared__ int content[kWalkers];   // the survivor's number, or one of these two
  __shared__ unsigned counts[3][kWalkers / 32];
  const RewireTensor& tensor = tensors.at[blockIdx.x];
  const int t = tensors.first + static_cast<int>(blockIdx.x);
  const std::uint64_t seed = operands.scalars->seed;
  const std::uint64_t step = operands.scalars->step;
  const std::uint32_t elements = tensor.rows * tensor.columns;
  const std::int32_t* kept_rows = scratch.rows + tensor.first_row;
  const auto* kept_values = static_cast<const T*>(scratch.values);
  const auto first_kept = static_cast<std::int32_t>(scratch.old_begin[t]);
  auto* values = static_cast<T*>(operands.new_values);
  auto survivors = static_cast<std::int32_t>(scratch.survivors[t]);  // before the step's end
  auto empty = static_cast<std::int64_t>(elements) - survivors;      // likewise
  auto wanted = static_cast<double>(scratch.growth[t]);
  auto end = static_cast<std::uint32_t>(scratch.new_begin[t] + scratch.survivors[t] + scratch.growth[t]);
  if (threadIdx.x == 0) operands.new_rows[tensor.first_row + tensor.rows] = static_cast<std::int32_t>(end);
  for (std::uint32_t steps = (elements + kWalkers - 1) / kWalkers; steps-- > 0;) {
    const std::uint32_t base = steps * kWalkers;
    const std::uint32_t place = base + threadIdx.x;
    const std::uint32_t count = min(kWalkers, elements - base);
    const bool valid = threadIdx.x < count;
    content[threadIdx.x] = kEmpty;
    __syncthreads();
    const std::int32_t survivor = survivors - 1 - static_cast<std::int32_t>(threadIdx.x);
    std::uint32_t survivor_place = 0;
    if (survivor >= 0) {
      const std::int32_t k = first_kept + survivor;
      survivor_place = row_of(kept_rows, tensor.rows, k) * tensor.columns +
                       column_at(scratch.columns, constants.bits, static_cast<std::uint32_t>(k));
    }
    const bool is_here = survivor >= 0 && survivor_place >= base;
    if (is_here) content[survivor_place - base] = first_kept + survivor;
    unsigned here = 0;
    rank_in_block(is_here, counts[0], here);  // its barrier shows the contents to all
    survivors -= static_cast<std::int32_t>(here);
    const bool is_empty = valid && content[threadIdx.x] == kEmpty;
    unsigned empty_here = 0;
    // Of the empty places, those up to this one are still to be looked at.
    const unsigned before = rank_in_block(is_empty, counts[1], empty_here);
    const std::int64_t left = empty - empty_here + before + 1;
    empty -= empty_here;
    limit[threadIdx.x] = is_empty
                             ? uniform_unit(ops::rewire_word(seed, step, tensor.first_place + place)) * static_cast<double>(left)
                             : CUDART_INF;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (std::uint32_t i = count; i-- > 0;) {
        const bool takes = limit[i] < wanted;
        if (takes) content[i] = kNew;
        wanted -= takes ? 1.0 : 0.0;
      }
    }
    __syncthreads();
    const int mine = valid ? content[threadIdx.x] : kEmpty;
    unsigned total = 0;
    const unsigned rank = rank_in_block(mine != kEmpty, counts[2], total);
    end -= total;
    if (valid && place % tensor.columns == 0)
      operands.new_rows[tensor.first_row + place / tensor.columns] = static_cast<std::int32_t>(end + rank);
    if (mine != kEmpty) {
      values[end + rank] = mine == kNew ? narrow<T>(0.0F) : kept_values[mine];
      put_column(operands.new_columns, constants.bits, end + rank, place % tensor.columns);
    }
    __syncthreads();
  }
}

}  // namespace

std::size_t rewire_scratch(std::size_t tensors, const RewireConstants& constants, std::size_t value_bytes) {
  return on_boundary(constants.column_bytes) + on_boundary(constants.all_rows * sizeof(std::int32_t)) +
         5 * on_boundary(tensors * sizeof(std::int64_t)) + on_boundary(value_bytes);
}

template <typename T>
void sparse_rewire(cudaStream_t stream, std::span<const RewireTensor> tensors, const RewireOperands& operands,
                   const RewireConstants& constants, std::byte* memory) {
  const Scratch scratch = cut(memory, tensors.size(), constants, operands.new_momentum);
  const auto for_some = [&](const auto& body) {
    for (std::size_t first = 0; first < tensors.size(); first += kMostTensors) {
      const auto some = tensors.subspan(first, std::min(kMostTensors, tensors.size() - first));
      RewireTensors argument{};
      std::copy(some.begin(), some.end(), argument.at);
      argument.first = static_cast<int>(first);
      body(argument, static_cast<unsigned>(some.size()));
    }
  };
  SNUG_CUDA_CALL(cudaMemsetAsync(scratch.columns, 0, constants.column_bytes, stream));
  for_some([&](const RewireTensors& some, unsigned count) {
    prune_kernel<T><<<count, kWalkers, 0, stream>>>(some, operands, constants, scratch);
    check_launch("prune_kernel");
  });
  share_kernel<<<1, 1, 0, stream>>>(operands, constants, scratch, static_cast<int>(tensors.size()));
  check_launch("share_kernel");
  SNUG_CUDA_CALL(cudaMemsetAsync(operands.new_columns, 0, constants.column_bytes, stream));
  for_some([&](const RewireTensors& some, unsigned count) {
    grow_kernel<T><<<count, kWalkers, 0, stream>>>(some, operands, constants, scratch);
    check_launch("grow_kernel");
  });
  if (operands.new_momentum != nullptr)
    SNUG_CUDA_CALL(cudaMemsetAsync(operands.new_momentum, 0, constants.nonzeros * sizeof(T), stream));
}

template void sparse_rewire<float>(cudaStream_t, std::span<const RewireTensor>, const RewireOperands&, const RewireConstants&,
                                   std::byte*);
template void sparse_rewire<__half>(cudaStream_t, std::span<const RewireTensor>, const RewireOperands&, const RewireConstants&,
                                    std::byte*);

}  // namespace snug::backends::cuda::launch
