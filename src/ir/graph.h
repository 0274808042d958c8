// A model before differentiation: the forward ops of one microbatch, and what training needs to know about its states.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/program.h"

namespace snug {

// How a state begins. Random ones are keyed by the state's number and drawn per logical element.
struct Initializer {
  enum class Kind : std::uint8_t { none, constant, normal, uniform };
  Kind kind = Kind::none;
  double amount = 0;      // the constant, the standard deviation or the bound
  std::int64_t key = -1;  // of random draws; -1: the state's number
};

// Weights that are stored by their nonzeros, all in one store (ops/sparse.h).
struct SparseTensor {
  std::string name;  // of the weight that it stands for
  Shape shape;       // O, I, kh, kw
  std::int64_t first_row = 0;
  std::int64_t nonzeros = 0;  // in the beginning
  Initializer initializer = {};
  std::int64_t key = 0;  // the number of the state that it was: its values are those that the dense weight would begin with
};
struct SparseStore {
  enum class Method : std::uint8_t {
    fixed,  // the pattern stays as it was drawn
    set,    // sparse evolutionary training: each tensor's smallest values move within it
    dsr,    // dynamic sparse reparameterization: values below one threshold move to any tensor
  };
  std::vector<SparseTensor> tensors;  // empty: the model is dense
  StateId weight = StateId::none(), columns = StateId::none(), rows = StateId::none();
  StateId threshold = StateId::none(), pruned = StateId::none();  // none: the pattern stays
  int bits = 0;
  Method method = Method::fixed;
  std::int64_t target = 0;  // values that a rewiring means to move
};

struct Graph {
  std::string name;
  std::int64_t batch = 0;  // examples of one microbatch
  std::vector<State> states;
  std::vector<Initializer> initializers;  // one a state
  Section forward;
  NodeId loss = NodeId::none();
  // In evaluation, `second` is read where training reads `first`: running statistics for those of the batch, a dropout's input
  // for its output, plain images for augmented ones. Whatever nothing reads any more falls away.
  std::vector<std::pair<ValueId, ValueId>> evaluation_substitutes;

  SparseStore sparse = {};

  StateId scalars = StateId::none();
  StateId metrics = StateId::none();
};

}  // namespace snug
