// A program may come from a file: whatever operands and constants it has, an op answers with types or with a UserError. What this
// hunts is arithmetic that overflows, so it is worth most under the sanitizers.
#include <limits>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"

namespace snug::ops {
namespace {

class Hostile {
 public:
  explicit Hostile(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t bound) { return random_() % bound; }

  std::int64_t number() {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    constexpr std::array<std::int64_t, 14> kNumbers{
        {0, 1, 2, 3, -1, kMost, kMost - 1, -kMost - 1, kMost / 2 + 1, 1 << 20, (1 << 20) + 1, 1LL << 31, 1LL << 48, 7}};
    return kNumbers[below(kNumbers.size())];
  }

  Type type() {
    if (below(5) == 0) return scalars_type();
    std::vector<std::int64_t> dims(below(8) == 0 ? below(7) : 4 - 2 * below(2));
    std::int64_t room = Shape::kMaxElements;
    for (std::int64_t& dim : dims) {
      dim = below(4) == 0 ? std::int64_t{1} << below(40) : static_cast<std::int64_t>(1 + below(4));
      dim = std::min(dim, room);
      room /= dim;
    }
    Type result{.dtype = static_cast<DType>(below(8)), .shape = Shape(dims)};
    if (below(2) == 0) result.dtype = DType::f32;
    if (below(2) == 0) result.layout = Layout::channels_last();
    return result;
  }

  Attributes attributes() {
    Attributes result;
    for (const char* name : {"stride", "padding", "dilation", "kernel"})
      result.set(name, std::vector<std::int64_t>{number(), number()});
    for (const char* name : {"groups",     "group_size", "batch",      "pixels",     "key",         "channels",   "channels_last",
                             "nesterov",   "augment",    "bits",       "dtype",      "first_row",   "nonzeros",   "target",
                             "per_tensor", "uniform",    "stochastic", "rows",       "positions",   "heads",      "kv_heads",
                             "head_size",  "causal",     "inverse",    "activation", "transpose_a", "transpose_b"}) {
      result.set(name, number());
    }
    for (const char* name : {"epsilon", "momentum", "weight_decay", "probability", "label_smoothing", "value", "bound", "spread",
                             "scale", "dropout"}) {
      result.set(name, 0.5);
    }
    result.set("base", 100.0);
    if (below(2) == 0) result.set("rows_per_example", number());
    if (below(2) == 0) {
      for (const char* name : {"heads", "kv_heads", "causal"}) result.set(name, std::int64_t{1});
    }
    for (const char* name : {"shape", "input_shape", "weight_shape"}) {
      const Shape shape = type().shape;
      result.set(name, std::vector<std::int64_t>(shape.dims().begin(), shape.dims().end()));
      if (below(8) == 0) result.set(name, std::vector<std::int64_t>(below(9), number()));
    }
    for (const char* name : {"tensor_rows", "tensor_columns", "tensor_nonzeros"})
      result.set(name, std::vector<std::int64_t>{number(), number()});
    if (below(2) == 0) result.set("bits", static_cast<std::int64_t>(below(30)));
    if (below(2) == 0) result.set("groups", std::int64_t{1});
    if (below(2) == 0) result.set("stride", number());
    if (below(4) == 0) result.set(kAccumulate, std::int64_t{1});
    return result;
  }

 private:
  std::mt19937_64 random_;
};

TEST(HostileCalls, AreAnsweredOrRefusedByEveryOp) {
  Hostile hostile(1);
  std::size_t answered = 0;
  for (int round = 0; round < 3000; ++round) {
    for (const OpDef* op : all()) {
      NodeTypes types;
      const Type one = hostile.type();
      for (std::size_t i = 1 + hostile.below(4); i-- > 0;) types.inputs.push_back(hostile.below(2) == 0 ? one : hostile.type());
      const Attributes attributes = hostile.attributes();
      try {
        types.outputs = infer_types(*op, {types.inputs, attributes});
        ++answered;
        const std::int64_t flops = op->flops == nullptr ? 0 : op->flops(types, attributes);
        EXPECT_GE(flops, 0) << op->name;
      } catch (const UserError&) {
        // refused, which is an answer
      }
    }
  }
  EXPECT_GT(answered, 1000U);  // otherwise this test asks only nonsense
}

}  // namespace
}  // namespace snug::ops
