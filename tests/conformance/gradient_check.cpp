#include "conformance/gradient_check.h"

#include <cmath>
#include <cstring>

#include "autodiff/differentiate.h"
#include "backends/reference/reference.h"
#include "base/error.h"
#include "ir/scalars.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "passes/model/add_update.h"
#include "passes/model/narrow.h"
#include "plan/compile.h"
#include "runtime/executor.h"

namespace snug::conformance {

namespace {

// Pseudo-random in [-1, 1), from the element's number alone.
double noise(std::uint64_t stream, std::uint64_t i) {
  std::uint64_t x = (stream << 32U) + i + 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  x ^= x >> 31U;
  return static_cast<double>(x >> 11U) * 0x1p-52 - 1.0;
}

constexpr std::uint64_t kWeights = 77;

// weighted_sum(x, scalars) -> Metrics; its weights are drawn by element, in x's own order, and are 0 for padding.
std::vector<Type> infer_sum(const OpCall& call) {
  ops::require_inputs(call, 2);
  return {ops::metrics_type()};
}
std::vector<Type> infer_sum_grad(const OpCall& call) {
  ops::require_inputs(call, 2);
  return {call.inputs[0]};
}

extern const OpDef weighted_sum_grad;
void build_sum_gradient(GradientContext& context) {
  context.set_gradient(0, context.emit(weighted_sum_grad, {context.input(0), context.input(1)}));
}
constexpr std::array<GradientRecipe, 1> kRecipes{{{.name = "input", .keeps_inputs = 0b11, .build = build_sum_gradient}}};
constexpr LossFacts kFacts{};
constinit const OpDef weighted_sum{.name = "weighted_sum", .infer = infer_sum, .gradients = kRecipes, .loss = &kFacts};
constinit const OpDef weighted_sum_grad{.name = "weighted_sum_grad", .infer = infer_sum_grad};

class WeightedSum : public BoundKernel {
 public:
  explicit WeightedSum(const KernelArguments& arguments)
      : x_(arguments.inputs[0]), scalars_(arguments.inputs[1]), out_(arguments.outputs[0]) {}

 protected:
  // The batch is the outermost dimension in every layout.
  std::int64_t valid_elements() const {
    const auto valid = static_cast<std::int64_t>(reinterpret_cast<const Scalars*>(scalars_.data)->valid_examples);
    return x_.type.elements() / x_.type.shape[0] * valid;
  }
  Operand x_, scalars_, out_;
};

class WeightedSumForward : public WeightedSum {
 public:
  using WeightedSum::WeightedSum;
  void run() override {
    Metrics metrics;
    const auto* x = reinterpret_cast<const double*>(x_.data);
    for (std::int64_t i = 0; i < valid_elements(); ++i) metrics.loss += x[i] * noise(kWeights, static_cast<std::uint64_t>(i));
    std::memcpy(out_.data, &metrics, sizeof(metrics));
  }
};

class WeightedSumBackward : public WeightedSum {
 public:
  using WeightedSum::WeightedSum;
  void run() override {
    auto* dx = reinterpret_cast<double*>(out_.data);
    for (std::int64_t i = 0; i < x_.type.elements(); ++i) {
      dx[i] = i < valid_elements() ? noise(kWeights, static_cast<std::uint64_t>(i)) : 0.0;
    }
  }
};

KernelMatch accept(const KernelQuery& /*query*/) { return Accept{}; }

template <typename Kernel>
std::unique_ptr<BoundKernel> bind(const KernelArguments& arguments) {
  return std::make_unique<Kernel>(arguments);
}

constexpr KernelDef kForward{
    .name = "test_weighted_sum", .op = "weighted_sum", .match = accept, .bind = bind<WeightedSumForward>};
constexpr KernelDef kBackward{
    .name = "test_weighted_sum_grad", .op = "weighted_sum_grad", .match = accept, .bind = bind<WeightedSumBackward>};

// A compiled case whose states are filled with noise.
class Harness {
 public:
  Harness(const GradientCase& test, Program model, const PassOptions& passes)
      : backend_(checking_backend()), plan_(make_plan(std::move(model), passes)), executor_(plan_, backend_) {
    executor_.write_scalars({.seed = 5,
                             .valid_examples = static_cast<std::uint32_t>(test.valid == 0 ? test.batch : test.valid),
                             .batch_examples = static_cast<std::uint32_t>(test.valid == 0 ? test.batch : test.valid),
                             .total_weight = static_cast<double>(test.valid == 0 ? test.batch : test.valid)});
    const Program& program = plan_.program;
    executor_.run(SectionKind::init);  // draws the pattern of sparse weights
    for (std::size_t s = 0; s < program.states.size(); ++s) {
      const State& state = program.states[s];
      if (is_pattern(state)) continue;
      if (state.role == Role::parameter || (state.role == Role::input && state.type.dtype == DType::f64)) {
        const std::span<double> data = values(StateId(s));
        for (std::size_t i = 0; i < data.size(); ++i) data[i] = noise(s, i);
      } else if (state.role == Role::statistic) {
        const std::span<double> data = values(StateId(s));
        for (std::size_t i = 0; i < data.size(); ++i) data[i] = 1.5 + noise(s, i);
      } else if (state.type.dtype == DType::i32) {
        const std::span numbers(reinterpret_cast<std::int32_t*>(address(StateId(s))),
                                static_cast<std::size_t>(state.type.elements()));
        for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int32_t>(i % 4);
        if (const auto given = test.indices.find(state.name); given != test.indices.end())
          std::ranges::copy(given->second, numbers.begin());
      }
    }
    for (std::size_t s = 0; s < program.states.size(); ++s) {
      if (program.states[s].role == Role::statistic && !is_pattern(program.states[s]))
        statistics_.emplace_back(StateId(s), copy(StateId(s)));
    }
  }

  // Forward and backward; the loss. Accumulators and running statistics begin the same each time.
  double run() {
    executor_.write_metrics({});
    for (std::size_t s = 0; s < plan_.program.states.size(); ++s) {
      if (plan_.program.states[s].role == Role::gradient) std::ranges::fill(values(StateId(s)), 0.0);
    }
    for (const auto& [id, saved] : statistics_) std::ranges::copy(saved, values(id).begin());
    executor_.run(SectionKind::micro);
    return executor_.read_metrics().loss;
  }

  std::span<double> values(StateId id) {
    return {reinterpret_cast<double*>(address(id)), static_cast<std::size_t>(plan_.program.state(id).type.elements())};
  }
  // In the arena itself: the reference backend's lies in host memory.
  std::byte* address(StateId id) { return executor_.arena().data() + plan_.state_offsets[id.index()].count(); }
  std::vector<double> copy(StateId id) { return {values(id).begin(), values(id).end()}; }
  const Program& program() const { return plan_.program; }

 private:
  static bool is_pattern(const State& state) { return state.role == Role::statistic && state.type.dtype != DType::f64; }

  Plan make_plan(Program model, const PassOptions& passes) {
    std::vector<PassTiming> timings;
    Program lowered = add_update(differentiate(std::move(model)),
                                 {.settings = ops::sgd_settings({.momentum = 0, .weight_decay = 0, .nesterov = false})});
    return place(run_passes(std::move(lowered), memory_passes(), {.backend = backend_}, passes, timings), Bytes(64));
  }

  Backend backend_;
  Plan plan_;
  Executor executor_;
  std::vector<std::pair<StateId, std::vector<double>>> statistics_;
};

}  // namespace

Program build_graph(const GradientCase& test) {
  frontend::GraphBuilder builder("case", test.batch);
  test.build(builder);
  Program graph = narrow(std::move(builder).finish(), DType::f64);
  return test.rewrite == nullptr ? graph : test.rewrite(std::move(graph));
}

ValueId operand(frontend::GraphBuilder& builder, const std::string& name, const Shape& shape) {
  Type type{.dtype = DType::f32, .shape = shape};
  if (shape.rank() == 4) type.layout = Layout::channels_last();
  return builder.parameter(name, type, {});
}

void weighted_sum_loss(frontend::GraphBuilder& builder, ValueId x) { builder.loss("loss", weighted_sum, {x, builder.scalars()}); }

Backend checking_backend() {
  Backend backend = backends::reference_backend(2);
  backend.kernels.push_back(&kForward);
  backend.kernels.push_back(&kBackward);
  return backend;
}

GradientReport check_gradients(const GradientCase& test, const OpDef& op, int recipe) {
  Program model = build_graph(test);
  for (Node& node : model.section(SectionKind::forward).nodes) {
    if (node.op == &op) node.attributes.set(kRecipe, std::int64_t{recipe});
  }
  Harness harness(test, std::move(model), {});
  harness.run();
  GradientReport report;
  for (std::size_t s = 0; s < harness.program().states.size(); ++s) {
    const State& state = harness.program().states[s];
    if (!state.trainable) continue;
    const StateId accumulator = harness.program().find_state(state.name + ".grad");
    SNUG_CHECK(accumulator.valid(), "'{}' has no gradient", state.name);
    harness.run();
    const std::vector<double> analytic = harness.copy(accumulator);
    for (std::size_t i = 0; i < analytic.size(); ++i) {
      double& element = harness.values(StateId(s))[i];
      const double kept = element;
      element = kept + test.step;
      const double above = harness.run();
      element = kept - test.step;
      const double below = harness.run();
      element = kept;
      const double numeric = (above - below) / (2 * test.step);
      const double error = std::abs(analytic[i] - numeric) / (1 + std::abs(numeric));
      ++report.compared;
      // Written so that a NaN is an error, too.
      if (!(error <= report.worst_error)) {
        report.worst_error = std::isnan(error) ? 1e300 : error;
        report.worst_place = fmt::format("{}[{}]: {} by backward, {} by differences", state.name, i, analytic[i], numeric);
      }
    }
  }
  return report;
}

std::vector<std::byte> gradient_bytes(const GradientCase& test, const std::vector<std::string>& disabled_passes,
                                      Program (*rewrite)(Program)) {
  Program model = rewrite == nullptr ? build_graph(test) : rewrite(build_graph(test));
  Harness harness(test, std::move(model), {.disabled = disabled_passes});
  const double loss = harness.run();
  std::vector<std::byte> bytes(sizeof(loss));
  std::memcpy(bytes.data(), &loss, sizeof(loss));
  for (std::size_t s = 0; s < harness.program().states.size(); ++s) {
    if (harness.program().states[s].role != Role::gradient) continue;
    const auto data = std::as_bytes(harness.values(StateId(s)));
    bytes.insert(bytes.end(), data.begin(), data.end());
  }
  return bytes;
}

std::vector<GradientCase> all_cases() {
  std::vector<GradientCase> cases = layer_cases();
  for (GradientCase& test : normalization_cases()) cases.push_back(std::move(test));
  for (GradientCase& test : sequence_gradient_cases()) cases.push_back(std::move(test));
  return cases;
}

}  // namespace snug::conformance
