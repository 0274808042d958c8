#include "conformance/rounding_reference.h"

#include <array>
#include <set>
#include <utility>

#include "backends/reference/reference.h"
#include "base/error.h"
#include "conformance/stored_values.h"
#include "ops/ops.h"

namespace snug::conformance {

namespace {

// Ops whose results stay f32 in a model of 16 bits: statistics and sums of normalization. sum_to_channels makes both kinds (the
// gradients of norms and of biases), and keeping the finer one costs a bias only the last rounding.
const std::set<std::string_view> kFine{
    "batch_norm_statistics",      "batch_norm_running",   "batch_norm_grad_reduce",     "sum_to_channels",
    "layer_norm_grad_parameters", "rms_norm_grad_weight", "group_norm_grad_parameters", "softmax_cross_entropy",
    "linear_cross_entropy"};
// ... and those of which the first result alone is an activation.
const std::set<std::string_view> kFineBehindTheFirst{"group_norm", "layer_norm", "rms_norm", "attention"};

// How output `output` of an op is stored.
DType stored_as(std::string_view op, std::size_t output, DType stored) {
  const bool fine = kFine.contains(op) || (kFineBehindTheFirst.contains(op) && output > 0) ||
                    (op == "linear_cross_entropy_step" && output == 2);
  return fine ? DType::f32 : stored;
}

// The reference's kernels, and the dtype to round to, for the functions below.
std::vector<const KernelDef*> originals;
DType rounding_to = DType::f64;
std::optional<std::uint64_t> random_state;  // where rounding is stochastic

// In [-0.5, 0.5), by a linear congruential generator (Knuth's MMIX).
double next_random(std::uint64_t& state) {
  state = state * 6364136223846793005U + 1442695040888963407U;
  return static_cast<double>(state >> 11U) * 0x1p-53 - 0.5;
}

double stored_value(DType stored, double value) {
  if (!random_state || bits_per_element(stored) != 16) return rounded_to(stored, value);
  // Half a unit in the last place to either side, at most.
  const double unit = stored == DType::bf16 ? 0x1p-8 : 0x1p-11;
  return rounded_to(stored, value * (1 + unit * next_random(*random_state)));
}

class Rounding final : public BoundKernel {
 public:
  Rounding(std::unique_ptr<BoundKernel> kernel, std::string_view op, std::span<const Operand> outputs)
      : kernel_(std::move(kernel)), op_(op), outputs_(outputs.begin(), outputs.end()) {}
  void run() override {
    kernel_->run();
    for (std::size_t o = 0; o < outputs_.size(); ++o) {
      if (outputs_[o].type.dtype != DType::f64) continue;
      const DType stored = stored_as(op_, o, rounding_to);
      auto* values = reinterpret_cast<double*>(outputs_[o].data);
      for (std::int64_t i = 0; i < outputs_[o].type.elements(); ++i) values[i] = stored_value(stored, values[i]);
    }
  }

 private:
  std::unique_ptr<BoundKernel> kernel_;
  std::string_view op_;
  std::vector<Operand> outputs_;
};

// A kernel's `bind` cannot carry data, so there is one function for each.
template <std::size_t I>
std::unique_ptr<BoundKernel> bind_rounding(const KernelArguments& arguments) {
  return std::make_unique<Rounding>(originals[I]->bind(arguments), originals[I]->op, arguments.outputs);
}

constexpr std::size_t kMost = 128;
using Bind = std::unique_ptr<BoundKernel> (*)(const KernelArguments&);

template <std::size_t... I>
constexpr std::array<Bind, sizeof...(I)> binders(std::index_sequence<I...> /*numbers*/) {
  return {bind_rounding<I>...};
}

}  // namespace

Backend rounding_reference(DType stored) {
  Backend backend = backends::reference_backend(2);
  if (stored != DType::f16 && stored != DType::bf16) return backend;
  static constexpr auto kBinders = binders(std::make_index_sequence<kMost>());
  static std::vector<KernelDef> rounded;
  if (rounded.empty()) {
    SNUG_CHECK(backend.kernels.size() <= kMost, "{} kernels are more than {}", backend.kernels.size(), kMost);
    originals = backend.kernels;
    for (std::size_t i = 0; i < originals.size(); ++i) {
      rounded.push_back(*originals[i]);
      rounded.back().bind = kBinders[i];
    }
  }
  rounding_to = stored;
  for (std::size_t i = 0; i < rounded.size(); ++i) backend.kernels[i] = &rounded[i];
  return backend;
}

void round_stochastically(std::optional<std::uint64_t> seed) { random_state = seed; }

}  // namespace snug::conformance
