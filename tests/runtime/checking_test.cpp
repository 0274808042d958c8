// Checking mode catches what it is there for.
#include <array>
#include <cstring>
#include <functional>

#include <gtest/gtest.h>

#include "backends/reference/reference.h"
#include "base/error.h"
#include "ir/text.h"
#include "ops/ops.h"
#include "plan/compile.h"
#include "runtime/executor.h"

namespace snug {

namespace {

// Two branches that are alive at the same time.
constexpr std::string_view kProgram = R"(program two-branches batch 1 microbatch 1
state x : f32[64] input
state y : f32[64] statistic
section micro
  %a = relu(x@0) : f32[64] activation ; forward a
  %b = add(x@0, x@0) : f32[64] activation ; forward b
  %c = add(%a, %b) : f32[64] activation ; forward c
  y@1 = add(y@0, %c) : state ; forward d
)";

Program program_using(const Backend& backend) {
  Program program = parse_program(kProgram, ops::find);
  std::vector<PassTiming> timings;
  return run_passes(std::move(program), memory_passes(), {.backend = backend}, {.disabled = {"share_bytes"}}, timings);
}

std::string failure_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

void fill_input(Executor& executor) {
  std::array<float, 64> x{};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) - 20.0F;
  executor.write(executor.plan().program.find_state("x"), std::as_bytes(std::span(x)));
}

TEST(CheckingMode, AcceptsASoundPlan) {
  const Backend backend = backends::reference_backend(1);
  const Plan plan = place(program_using(backend), Bytes(64));
  Executor executor(plan, backend);
  fill_input(executor);
  executor.run(SectionKind::micro);
  std::array<float, 64> y{};
  executor.read(plan.program.find_state("y"), std::as_writable_bytes(std::span(y)));
  EXPECT_EQ(y[0], -40.0F);
  EXPECT_EQ(y[63], 129.0F);
}

TEST(CheckingMode, CatchesAWrongPlacement) {
  const Backend backend = backends::reference_backend(1);
  Plan plan = place(program_using(backend), Bytes(64));
  ASSERT_EQ(find_violation(plan), std::nullopt);
  // %b moves onto %a while both are alive.
  SectionPlan& section = plan.sections[0];
  const auto buffer = [&](std::string_view name) {
    for (std::size_t i = 0; i < section.liveness.buffers.size(); ++i) {
      if (plan.program.sections[0].value(section.liveness.buffers[i].tenants.front().value).name == name) return i;
    }
    return section.liveness.buffers.size();
  };
  section.offsets.at(buffer("b")) = section.offsets.at(buffer("a"));
  EXPECT_NE(find_violation(plan), std::nullopt);

  Executor executor(plan, backend);
  fill_input(executor);
  const std::string same_place = failure_of([&] { executor.run(SectionKind::micro); });
  EXPECT_NE(same_place.find("'a' was changed by a node that does not write it"), std::string::npos) << same_place;

  section.offsets.at(buffer("b")) = section.offsets.at(buffer("a")) + Bytes(64);
  Executor shifted(plan, backend);
  fill_input(shifted);
  const std::string overlapping = failure_of([&] { shifted.run(SectionKind::micro); });
  EXPECT_NE(overlapping.find("wrote past the end of 'a'"), std::string::npos) << overlapping;
}

// A relu that begins `Before` bytes too early and writes `After` bytes too many.
template <int Before, int After>
class RogueRelu : public BoundKernel {
 public:
  explicit RogueRelu(const KernelArguments& arguments) : out_(arguments.outputs[0]) {}
  void run() override {
    std::memset(out_.data - Before, 0, static_cast<std::size_t>(out_.type.bytes().count() + Before + After));
  }

 private:
  Operand out_;
};

KernelMatch accept(const KernelQuery& /*query*/) { return Accept{}; }

template <int Before, int After>
Backend rogue_backend() {
  static constexpr KernelDef kRogue{
      .name = "rogue_relu", .op = "relu", .match = accept, .bind = [](const KernelArguments& arguments) {
        return std::unique_ptr<BoundKernel>(std::make_unique<RogueRelu<Before, After>>(arguments));
      }};
  Backend backend = backends::reference_backend(1);
  backend.kernels.insert(backend.kernels.begin(), &kRogue);
  return backend;
}

template <int Before, int After>
std::string failure_of_rogue() {
  const Backend backend = rogue_backend<Before, After>();
  const Plan plan = place(program_using(backend), Bytes(64));
  Executor executor(plan, backend);
  return failure_of([&] { executor.run(SectionKind::micro); });
}

TEST(CheckingMode, CatchesAKernelThatWritesPastItsOutput) {
  const std::string failure = failure_of_rogue<0, 1>();
  EXPECT_NE(failure.find("wrote past the end of 'a'"), std::string::npos) << failure;
  EXPECT_NE(failure.find("rogue_relu"), std::string::npos) << failure;
}

TEST(CheckingMode, CatchesAKernelThatWritesBeforeItsOutput) {
  const std::string failure = failure_of_rogue<1, 0>();
  EXPECT_NE(failure.find("wrote before the start of 'a'"), std::string::npos) << failure;
}

TEST(CheckingMode, AcceptsTheSameKernelWithinItsOutput) { EXPECT_EQ((failure_of_rogue<0, 0>()), ""); }

// Writes into its input instead of its output.
class InputWriter : public BoundKernel {
 public:
  explicit InputWriter(const KernelArguments& arguments) : in_(arguments.inputs[0]), out_(arguments.outputs[0]) {}
  void run() override {
    std::memset(out_.data, 0, static_cast<std::size_t>(out_.type.bytes().count()));
    std::memset(in_.data, 1, 4);
  }

 private:
  Operand in_, out_;
};

TEST(CheckingMode, CatchesAKernelThatChangesItsInput) {
  static constexpr KernelDef kWriter{
      .name = "rogue_relu", .op = "relu", .match = accept, .bind = [](const KernelArguments& arguments) {
        return std::unique_ptr<BoundKernel>(std::make_unique<InputWriter>(arguments));
      }};
  Backend backend = backends::reference_backend(1);
  backend.kernels.insert(backend.kernels.begin(), &kWriter);
  const Plan plan = place(program_using(backend), Bytes(64));
  Executor executor(plan, backend);
  EXPECT_NE(failure_of([&] { executor.run(SectionKind::micro); }).find("'x' was changed by a node that does not write it"),
            std::string::npos);
}

}  // namespace

}  // namespace snug
