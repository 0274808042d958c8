// Sparse weights (ops/sparse/sparse.h) read from a session as the dense tensors that they represent, a row at a time, so that a
// dense tensor is never in memory as a whole.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "io/safetensors.h"
#include "train/session.h"

namespace snug::train {

// Whether a state is part of the store: a weight file has the tensors instead.
bool is_sparse_store(const Program& program, const State& state);

// The dense tensors, in the order of the store.
std::vector<io::TensorInfo> sparse_tensor_infos(const Program& program);

// Passes tensor `index` to `write`, output channel by output channel, in logical order (I, kh, kw).
void read_sparse_tensor(const Session& session, std::size_t index, const std::function<void(std::span<const std::byte>)>& write);

}  // namespace snug::train
