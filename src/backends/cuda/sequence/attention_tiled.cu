#include "backends/cuda/sequence/attention_forward_tiles.cuh"
#include "backends/cuda/sequence/attention_launch.cuh"
#include "backends/cuda/sequence/tensor_core.cuh"

namespace snug::backends::cuda::launch {

namespace {

template <typename T, typename Choice>
using Kernel = ForwardTiles<TensorCore, T, Choice::kColumns, Choice::kDrops>;

template <typename T, typename Choice>
__global__ void __launch_bounds__(kTileThreads, 2)
    forward_tiles(const AttentionOperands<T> operands, const AttentionShape shape, const AttentionRule rule) {
  Kernel<T, Choice>::run(operands, shape, rule);
}

}  // namespace

template <typename T>
void prepare_tiled_attention(const AttentionShape& shape, const AttentionRule& rule) {
  with_tile_choice(shape, rule, [](auto choice) {
    using Choice = decltype(choice);
    allow_shared_memory(forward_tiles<T, Choice>, Kernel<T, Choice>::kSharedBytes);
  });
}

template <typename T>
void tiled_attention(cudaStream_t stream, const AttentionOperands<T>& operands, const AttentionShape& shape,
                     const AttentionRule& rule) {
  with_tile_choice(shape, rule, [&](auto choice) {
    using Choice = decltype(choice);
    const unsigned blocks = tile_blocks(shape, shape.length, shape.heads, kOwnRows<Choice::kColumns>);
    forward_tiles<T, Choice><<<blocks, kTileThreads, Kernel<T, Choice>::kSharedBytes, stream>>>(operands, shape, rule);
  });
  check_launch("tiled_attention");
}

#define SNUG_INSTANTIATE(T)                                                              \
  template void prepare_tiled_attention<T>(const AttentionShape&, const AttentionRule&); \
  template void tiled_attention(cudaStream_t, const AttentionOperands<T>&, const AttentionShape&, const AttentionRule&)

SNUG_INSTANTIATE(__half);
SNUG_INSTANTIATE(__nv_bfloat16);

}  // namespace snug::backends::cuda::launch
