#include "backends/cuda/sequence/attention_grad_tiles.cuh"
#include "backends/cuda/sequence/attention_launch.cuh"
#include "backends/cuda/sequence/tensor_core.cuh"

namespace snug::backends::cuda::launch {

namespace {

template <typename T, typename Choice>
using Queries = QueryGradTiles<TensorCore, T, Choice::kColumns, Choice::kDrops>;
template <typename T, typename Choice>
using Keys = KeyGradTiles<TensorCore, T, Choice::kColumns, Choice::kDrops>;

template <typename T, typename Choice>
__global__ void __launch_bounds__(kTileThreads, 2)
    query_grad_tiles(const AttentionGradOperands<T> operands, const AttentionShape shape, const AttentionRule rule) {
  Queries<T, Choice>::run(operands, shape, rule);
}

template <typename T, typename Choice>
__global__ void __launch_bounds__(kTileThreads, 2)
    key_grad_tiles(const AttentionGradOperands<T> operands, const AttentionShape shape, const AttentionRule rule) {
  Keys<T, Choice>::run(operands, shape, rule);
}

}  // namespace

template <typename T>
void prepare_tiled_attention_grad(const AttentionShape& shape, const AttentionRule& rule) {
  with_tile_choice(shape, rule, [](auto choice) {
    using Choice = decltype(choice);
    allow_shared_memory(query_grad_tiles<T, Choice>, Queries<T, Choice>::kSharedBytes);
    allow_shared_memory(key_grad_tiles<T, Choice>, Keys<T, Choice>::kSharedBytes);
  });
}

template <typename T>
void tiled_attention_grad(cudaStream_t stream, const AttentionGradOperands<T>& operands, const AttentionShape& shape,
                          const AttentionRule& rule) {
  with_tile_choice(shape, rule, [&](auto choice) {
    using Choice = decltype(choice);
    constexpr int kRows = kOwnRows<Choice::kColumns>;
    const unsigned query_blocks = tile_blocks(shape, shape.length, shape.heads, kRows);
    const unsigned key_blocks = tile_blocks(shape, shape.key_length, shape.kv_heads, kRows);
    query_grad_tiles<T, Choice><<<query_blocks, kTileThreads, Queries<T, Choice>::kSharedBytes, stream>>>(operands, shape, rule);
    key_grad_tiles<T, Choice><<<key_blocks, kTileThreads, Keys<T, Choice>::kSharedBytes, stream>>>(operands, shape, rule);
  });
  check_launch("tiled_attention_grad");
}

#define SNUG_INSTANTIATE(T)                                                                   \
  template void prepare_tiled_attention_grad<T>(const AttentionShape&, const AttentionRule&); \
  template void tiled_attention_grad(cudaStream_t, const AttentionGradOperands<T>&, const AttentionShape&, const AttentionRule&)

SNUG_INSTANTIATE(__half);
SNUG_INSTANTIATE(__nv_bfloat16);

}  // namespace snug::backends::cuda::launch
