// The reference against itself (the harness must find nothing there), and the other backends against the reference. A new one
// joins by adding a line to `backends_under_test`.
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <ostream>
#include <set>

#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "backends/reference/reference.h"
#include "base/error.h"
#include "conformance/backend_conformance.h"
#include "conformance/cuda_under_test.h"
#include "conformance/stored_values.h"
#include "frontend/zoo.h"
#include "ops/ops.h"
#include "plan/compile.h"
#include "support/labeled.h"
#include "train/rewiring.h"
#include "train/session.h"

namespace snug::conformance {
namespace {

struct BackendUnderTest {
  std::string name;
  DType dtype;
  std::optional<Backend> (*open)(std::string& why_not);
};

std::optional<Backend> open_reference(std::string& /*why_not*/) { return backends::reference_backend(2); }

std::optional<Backend> open_cpu(std::string& /*why_not*/) { return backends::cpu_backend(2); }

std::vector<BackendUnderTest> backends_under_test() {
  return {{"reference", DType::f32, open_reference},
          {"cpu", DType::f32, open_cpu},
          {"cpu", DType::bf16, open_cpu},
          {"cpu", DType::f16, open_cpu},
          {"cuda", DType::f32, open_cuda},
          {"cuda", DType::f16, open_cuda},
          {"cuda", DType::bf16, open_cuda}};
}

double by_dtype(DType dtype, double fine, double of_16_bits) { return bits_per_element(dtype) == 16 ? of_16_bits : fine; }

void PrintTo(const BackendUnderTest& backend, std::ostream* out) { *out << backend.name << " " << snug::name_of(backend.dtype); }

std::string name_of_backend(const testing::TestParamInfo<BackendUnderTest>& info) {
  return info.param.name + "_" + std::string(snug::name_of(info.param.dtype));
}

class BackendConformance : public testing::TestWithParam<BackendUnderTest> {
 protected:
  void SetUp() override {
    std::string why_not;
    backend_ = GetParam().open(why_not);
    if (!backend_) GTEST_SKIP() << why_not;
  }
  DType dtype() const { return GetParam().dtype; }

  std::optional<Backend> backend_;
};

TEST_P(BackendConformance, EveryOpAgreesWithTheReference) {
  std::map<std::string, double> worst;  // by kernel, in units of what is allowed
  std::set<std::string> accumulating;
  for (const OpCase& test : op_cases()) {
    const Comparison comparison = compare(*backend_, test, dtype());
    if (test.host_only && backend_->name == "cuda") {
      EXPECT_NE(comparison.refusal, "") << test.name;
      continue;
    }
    EXPECT_EQ(comparison.refusal, "") << test.name;
    for (const std::string& complaint : comparison.complaints)
      ADD_FAILURE() << test.name << " by " << comparison.kernel << ": " << complaint;
    double& entry = worst[comparison.kernel];
    entry = std::max(entry, comparison.worst);
    if (comparison.accumulates) accumulating.insert(comparison.kernel);
  }
  for (const auto& [kernel, error] : worst) {
    std::printf("  %-40s worst error %.3f of the allowed%s\n", kernel.c_str(), error,
                accumulating.contains(kernel) ? ", accumulates" : "");
  }
}

TEST_P(BackendConformance, GradientsOfWholeModelsAgreeWithTheReference) {
  const double tolerance = by_dtype(dtype(), 2e-4, 4e-2);
  for (const ModelCase& test : model_cases()) {
    const ModelComparison comparison = compare(*backend_, test, dtype(), tolerance);
    for (const std::string& complaint : comparison.complaints) ADD_FAILURE() << test.name << ": " << complaint;
    std::printf("  %-12s worst gradient off by %.2e (%s)\n", test.name.c_str(), comparison.worst_error,
                comparison.worst_place.c_str());
  }
}

struct Batch {
  std::vector<std::byte> images;
  std::vector<std::int32_t> labels;

  Batch(std::size_t examples, std::size_t example_bytes) : images(examples * example_bytes), labels(examples) {
    for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<std::byte>((i * 2654435761U) >> 24U);
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 10);
  }
  support::Labeled examples() const { return {images, labels}; }
};

std::vector<double> losses_of(train::Session& session, const Batch& batch, int steps) {
  session.set_learning_rate(0.05);
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i) losses.push_back(session.train_step(batch.examples()).loss);
  return losses;
}

train::Session session_of(const Backend& backend, DType dtype, std::int64_t microbatch, double clip_norm = 0) {
  const Program graph = frontend::build_zoo_model("wrn-10-1", {.batch = microbatch, .image_size = 16});
  train::Session session(
      compile(graph, backend, {.batch = 8, .methods = {.precision = dtype}, .update = {.clip_norm = clip_norm}}), backend, 3);
  session.set_loss_scale(dtype == DType::f16 ? 128 : 1);
  if (clip_norm > 0) session.set_clip_norm(clip_norm);
  return session;
}

TEST_P(BackendConformance, TrainingFollowsTheReference) {
  const Batch batch(8, 16 * 16 * 3);
  const Backend reference = backends::reference_backend(2);
  train::Session expected = session_of(reference, DType::f64, 4);
  train::Session tested = session_of(*backend_, dtype(), 4);
  const std::vector<double> expected_losses = losses_of(expected, batch, 6);
  const std::vector<double> losses = losses_of(tested, batch, 6);
  const double tolerance = by_dtype(dtype(), 1e-3, 5e-2);
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], expected_losses[i], tolerance * expected_losses[i]) << i;
  EXPECT_LT(losses.back(), losses.front());
}

TEST_P(BackendConformance, ClippedTrainingFollowsTheReference) {
  const Batch batch(8, 16 * 16 * 3);
  const Backend reference = backends::reference_backend(2);
  train::Session expected = session_of(reference, DType::f64, 4, 0.5);
  train::Session tested = session_of(*backend_, dtype(), 4, 0.5);
  const double tolerance = by_dtype(dtype(), 1e-3, 5e-2);
  for (int step = 0; step < 6; ++step) {
    const double expected_loss = losses_of(expected, batch, 1).front();
    EXPECT_NEAR(losses_of(tested, batch, 1).front(), expected_loss, tolerance * expected_loss) << step;
    EXPECT_GT(expected.gradient_norm(), 0.5) << step;  // so that something is clipped
    EXPECT_NEAR(tested.gradient_norm(), expected.gradient_norm(), tolerance * expected.gradient_norm()) << step;
  }
}

train::Session sparse_session_of(const Backend& backend, DType dtype, SparseMethod method) {
  const Program graph = frontend::build_zoo_model("wrn-10-1", {.batch = 4, .image_size = 16});
  const CompileOptions options{.batch = 8,
                               .methods = {.precision = dtype, .nonzero = 0.3},
                               .sparse = {.method = method, .rewire_fraction = 0.02, .threshold = 0.01}};
  train::Session session(compile(graph, backend, options), backend, 3);
  session.set_loss_scale(dtype == DType::f16 ? 128 : 1);
  return session;
}

// A state's bytes, whatever they are.
std::vector<std::uint8_t> bytes_of(train::Session& session, std::string_view name) {
  const Program& program = session.plan().program;
  const StateId id = program.find_state(name);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(program.state(id).type.bytes().count()));
  session.executor().read(id, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

TEST_P(BackendConformance, SparseTrainingFollowsTheReference) {
  const Batch batch(8, 16 * 16 * 3);
  const Backend reference = backends::reference_backend(2);
  train::Session expected = sparse_session_of(reference, DType::f64, SparseMethod::dsr);
  train::Session tested = sparse_session_of(*backend_, dtype(), SparseMethod::dsr);
  for (const char* pattern : {"sparse.columns", "sparse.rows"})
    EXPECT_EQ(bytes_of(tested, pattern), bytes_of(expected, pattern)) << pattern;
  const std::vector<double> expected_losses = losses_of(expected, batch, 6);
  const std::vector<double> losses = losses_of(tested, batch, 6);
  const double tolerance = by_dtype(dtype(), 1e-3, 5e-2);
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], expected_losses[i], tolerance * expected_losses[i]) << i;
  EXPECT_LT(losses.back(), losses.front());
}

std::int64_t sum_of_nonzeros(train::Session& session) {
  std::int64_t sum = 0;
  for (const auto& [name, count] : train::describe_sparse(session).nonzeros) sum += count;
  return sum;
}

// Nonzeros move, their number stays; again and again, from a graph too; the same run gives the same bits, within the plan.
TEST_P(BackendConformance, RewiringKeepsTheCountAndTheSameRunGivesTheSameBits) {
  const Batch batch(8, 16 * 16 * 3);
  for (const auto method : {SparseMethod::dsr, SparseMethod::set}) {
    train::Session first = sparse_session_of(*backend_, dtype(), method);
    train::Session second = sparse_session_of(*backend_, dtype(), method);
    first.executor().start_measuring();
    const std::vector<std::uint8_t> columns = bytes_of(first, "sparse.columns");
    const std::int64_t nonzeros = sum_of_nonzeros(first);
    for (train::Session* session : {&first, &second}) {
      for (int i = 0; i < 4; ++i) {
        losses_of(*session, batch, 2);
        session->run_periodic();
      }
    }
    EXPECT_EQ(losses_of(first, batch, 2), losses_of(second, batch, 2));
    for (const char* name : {"sparse.weight", "sparse.weight.momentum", "sparse.columns", "sparse.rows", "sparse.threshold"})
      EXPECT_EQ(bytes_of(first, name), bytes_of(second, name)) << name;
    EXPECT_NE(bytes_of(first, "sparse.columns"), columns);
    EXPECT_EQ(sum_of_nonzeros(first), nonzeros);
    EXPECT_GT(train::describe_sparse(first).pruned, 0);
    EXPECT_LE(first.executor().measured_peak_bytes(), first.plan().planned_peak_bytes);
    EXPECT_TRUE(first.executor().arena().margins_untouched());
  }
}

TEST_P(BackendConformance, TheSameRunGivesTheSameBits) {
  const Batch batch(8, 16 * 16 * 3);
  train::Session first = session_of(*backend_, dtype(), 4, 0.5);
  train::Session second = session_of(*backend_, dtype(), 4, 0.5);
  EXPECT_EQ(losses_of(first, batch, 4), losses_of(second, batch, 4));
  for (const State& state : first.plan().program.states) {
    if (state.role != Role::parameter) continue;
    EXPECT_EQ(first.read_state(state.name), second.read_state(state.name)) << state.name;
  }
}

// As long as nothing over- or underflows; in f16 small gradients do.
TEST_P(BackendConformance, LossScaleOfAPowerOfTwoChangesNoBit) {
  if (dtype() == DType::f16) GTEST_SKIP() << "small gradients underflow in f16";
  const Batch batch(8, 16 * 16 * 3);
  for (const double clip_norm : {0.0, 0.5}) {
    train::Session plain = session_of(*backend_, dtype(), 4, clip_norm);
    train::Session scaled = session_of(*backend_, dtype(), 4, clip_norm);
    scaled.set_loss_scale(1024);
    EXPECT_EQ(losses_of(plain, batch, 4), losses_of(scaled, batch, 4)) << clip_norm;
    if (clip_norm > 0) {
      EXPECT_EQ(plain.gradient_norm(), scaled.gradient_norm());
    }
    EXPECT_THROW(scaled.set_loss_scale(0), UserError);
  }
}

// The update in backward, right behind each gradient; the whole batch at once.
train::Session fused_session_of(const Backend& backend, DType dtype, bool fuses) {
  const Program graph = frontend::build_zoo_model("wrn-10-1", {.batch = 8, .image_size = 16});
  const CompileOptions options{
      .methods = {.precision = dtype, .checkpoint = parse_checkpoint_strategy("residual-1"), .fuse_update = fuses}};
  train::Session session(compile(graph, backend, options), backend, 3);
  session.set_loss_scale(dtype == DType::f16 ? 128 : 1);
  return session;
}

TEST_P(BackendConformance, AFusedUpdateHasTheBitsOfASeparateOneAndSkipsByItself) {
  Batch batch(8, 16 * 16 * 3);
  train::Session plain = fused_session_of(*backend_, dtype(), false);
  train::Session fused = fused_session_of(*backend_, dtype(), true);
  EXPECT_FALSE(fused.plan().program.find_state("head.fc.weight.grad").valid());
  EXPECT_LT(fused.plan().planned_peak_bytes, plain.plan().planned_peak_bytes);
  EXPECT_EQ(losses_of(plain, batch, 4), losses_of(fused, batch, 4));
  batch.labels[3] = 1000;  // no such class: the loss is NaN
  EXPECT_TRUE(plain.train_step(batch.examples()).skipped);
  EXPECT_TRUE(fused.train_step(batch.examples()).skipped);
  for (const State& state : fused.plan().program.states) {
    if (state.role != Role::parameter && state.role != Role::optimizer) continue;
    EXPECT_EQ(fused.read_state(state.name), plain.read_state(state.name)) << state.name;
  }
}

TEST_P(BackendConformance, StatisticsInGroupsDoWhatMicrobatchesDo) {
  const auto session = [&](std::int64_t microbatch, std::int64_t group) {
    const Program graph =
        frontend::build_zoo_model("wrn-10-1", {.batch = microbatch, .image_size = 16, .statistics_group = group});
    train::Session made(compile(graph, *backend_, {.batch = 8, .methods = {.precision = dtype()}}), *backend_, 3);
    made.set_loss_scale(dtype() == DType::f16 ? 128 : 1);
    return made;
  };
  train::Session split = session(3, 0), grouped = session(8, 3);  // the last of three has 2 examples
  const Batch batch(8, 16 * 16 * 3);
  const std::vector<double> expected = losses_of(split, batch, 5), losses = losses_of(grouped, batch, 5);
  const double tolerance = by_dtype(dtype(), 1e-4, 5e-2);
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], expected[i], tolerance * expected[i]) << i;
  for (const char* name : {"head.bn.running_mean", "head.bn.running_var"}) {
    const std::vector<double> a = grouped.read_state(name), b = split.read_state(name);
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance * (std::abs(b[i]) + 1)) << name << " " << i;
  }
}

// A NaN anywhere must reach the loss, whatever lies between: only then can the step be skipped.
TEST_P(BackendConformance, ANumberThatIsNotFiniteReachesTheLossAndTheStepIsSkipped) {
  const Batch batch(8, 16 * 16 * 3);
  for (const double clip_norm : {0.0, 0.5}) {
    train::Session session = session_of(*backend_, dtype(), 4, clip_norm);
    losses_of(session, batch, 1);
    std::vector<double> stem = session.read_state("stem.conv.weight");
    stem[7] = std::numeric_limits<double>::quiet_NaN();
    session.write_state("stem.conv.weight", stem);
    const std::vector<double> head = session.read_state("head.fc.weight");
    const std::vector<double> momentum = session.read_state("head.fc.weight.momentum");
    const train::Result result = session.train_step(batch.examples());
    EXPECT_TRUE(std::isnan(result.loss)) << result.loss;
    EXPECT_TRUE(result.skipped);
    EXPECT_EQ(session.read_state("head.fc.weight"), head);
    EXPECT_EQ(session.read_state("head.fc.weight.momentum"), momentum);
    EXPECT_EQ(session.read_state("head.fc.weight.grad"), std::vector<double>(head.size(), 0.0));
  }
}

TEST_P(BackendConformance, NothingBesideThePlannedBytesIsTouched) {
  const Batch batch(8, 16 * 16 * 3);
  train::Session session = session_of(*backend_, dtype(), 4, 0.5);
  session.executor().start_measuring();
  for (int i = 0; i < 2; ++i) {
    session.train_step(batch.examples());
    session.evaluate(batch.examples());
  }
  // A library need not use all the workspace it asked for.
  EXPECT_LE(session.executor().measured_peak_bytes(), session.plan().planned_peak_bytes);
  EXPECT_GT(session.executor().measured_peak_bytes().count(), session.plan().planned_peak_bytes.count() / 2);
  EXPECT_TRUE(session.executor().arena().margins_untouched());
}

INSTANTIATE_TEST_SUITE_P(EveryBackend, BackendConformance, testing::ValuesIn(backends_under_test()), name_of_backend);

TEST(OpCases, EveryOpHasOne) {
  std::set<const OpDef*> covered;
  std::set<std::string> names;
  for (const OpCase& test : op_cases()) {
    covered.insert(test.op);
    EXPECT_TRUE(names.insert(test.name).second) << test.name << " is there twice";
  }
  for (const OpDef* op : ops::all()) EXPECT_TRUE(covered.contains(op)) << op->name;
}

// Kernels that err in one way each: the harness must notice every one.
class BrokenAdd : public BoundKernel {
 public:
  enum class Fault { none, wrong_value, unwritten, past_the_end, changes_input, unstable };
  BrokenAdd(Fault fault, const KernelArguments& arguments)
      : fault_(fault), a_(arguments.inputs[0]), b_(arguments.inputs[1]), y_(arguments.outputs[0]) {}
  void run() override {
    auto* a = reinterpret_cast<float*>(a_.data);
    const auto* b = reinterpret_cast<const float*>(b_.data);
    auto* y = reinterpret_cast<float*>(y_.data);
    const std::int64_t count = y_.type.elements();
    for (std::int64_t i = 0; i < (fault_ == Fault::unwritten ? count - 1 : count); ++i) y[i] = a[i] + b[i];
    if (fault_ == Fault::wrong_value) y[0] += 1e-5F;
    if (fault_ == Fault::past_the_end) y[count] = 0;
    if (fault_ == Fault::changes_input) a[0] += 1;
    if (fault_ == Fault::unstable) y[0] = std::nextafter(y[0], runs_++ % 2 == 0 ? 3.0F : -3.0F);
  }

 private:
  Fault fault_;
  Operand a_, b_, y_;
  int runs_ = 0;
};

template <BrokenAdd::Fault Fault>
constexpr KernelDef kBroken{.name = "broken_add",
                            .op = "add",
                            .match = [](const KernelQuery&) -> KernelMatch { return Accept{}; },
                            .bind = [](const KernelArguments& arguments) -> std::unique_ptr<BoundKernel> {
                              return std::make_unique<BrokenAdd>(Fault, arguments);
                            }};

std::string complaint_about(const KernelDef& kernel) {
  Backend backend = backends::reference_backend(1);
  backend.kernels = {&kernel};
  // Not a multiple of the alignment, so that there is room behind it.
  const OpCase test{"add", &ops::add, {{.shape = {3, 7}}, {.shape = {3, 7}}}};
  const Comparison comparison = compare(backend, test, DType::f32);
  return comparison.complaints.empty() ? "" : comparison.complaints.front();
}

TEST(OpComparison, FindsWhatAKernelDoesWrong) {
  using Fault = BrokenAdd::Fault;
  EXPECT_EQ(complaint_about(kBroken<Fault::none>), "");
  EXPECT_TRUE(complaint_about(kBroken<Fault::wrong_value>).starts_with("output 0 element 0 is"));
  EXPECT_TRUE(complaint_about(kBroken<Fault::unwritten>).starts_with("output 0 element 20 is"));
  EXPECT_EQ(complaint_about(kBroken<Fault::past_the_end>), "wrote outside the arena");
  EXPECT_TRUE(complaint_about(kBroken<Fault::changes_input>).starts_with("wrote byte 0, which is not its own (in0)"));
  EXPECT_EQ(complaint_about(kBroken<Fault::unstable>), "gives other bits when it runs again");
}

}  // namespace
}  // namespace snug::conformance
