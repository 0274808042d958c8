// Stores the weights of convolutions, all but the first, by their nonzeros in one store that they
// share (ops/sparse/sparse.h). The model no longer has the dense weights, nor their gradients and
// momenta. Changes the model: rung `sparse`.
//
//   state conv2.weight : f32[32x16x3x3]/channels_last            state sparse.weight : f32[1382]
//   %conv2 = conv2d(%x, conv2.weight) {...}               ->      state sparse.columns, sparse.rows
//                                                                %conv2 = sparse_conv2d(%x, sparse.weight, sparse.columns,
//                                                                                      sparse.rows) {first_row=0, ...}
//
// Left as they are: the first convolution, frozen weights, weights with another reader, grouped convolutions, and all ops other
// than convolutions. The pattern is drawn in `init`, with the same density in every tensor; its number of nonzeros never changes.
// Where the pattern moves, the section `periodic` prunes small values and regrows as many others.
#pragma once

#include <optional>
#include <string_view>

#include "ir/program.h"

namespace snug {

enum class SparseMethod : std::uint8_t {
  fixed,  // the pattern stays as it was drawn
  set,    // sparse evolutionary training: each tensor's smallest values move within it
  dsr,    // dynamic sparse reparameterization: values below one threshold move to any tensor
};

struct SparseOptions {
  SparseMethod method = SparseMethod::dsr;
  double rewire_fraction = 0.01377866;  // of all elements, zero or not: 20,000 of WRN-28-2's
  double threshold = 1e-3;              // below which values are pruned, initially
};

std::string_view name_of(SparseMethod method);
std::optional<SparseMethod> parse_sparse_method(std::string_view name);

// Whether it has a weight that could be sparse.
bool can_sparsify(const Program& model);

// `nonzero`: the share that is stored; 1: the model stays dense. UserError when it is not in (0, 1], or nothing in the model can
// be sparse.
Program sparsify(Program model, double nonzero, const SparseOptions& options = {});

}  // namespace snug
