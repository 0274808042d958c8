// A plan in two memories runs in two arenas, and each is measured and checked.
#include <array>
#include <cstring>

#include <gtest/gtest.h>

#include "backends/reference/reference.h"
#include "base/error.h"
#include "ir/text.h"
#include "ops/ops.h"
#include "plan/compile.h"
#include "runtime/executor.h"

namespace snug {

namespace {

// y = x + relu(x), by way of host memory; the state h keeps a copy of it there.
constexpr std::string_view kProgram = R"(program two-memories batch 1 microbatch 1
state x : f32[64] input
state y : f32[64] statistic
state h : f32[64] statistic host
section micro
  %a = relu(x@0) : f32[64] activation ; forward a
  %a.host = copy_to_space(%a) {host=1} : f32[64] activation host ; forward a
  %b = add(x@0, x@0) : f32[64] activation ; forward b
  %b.host = copy_to_space(%b) {host=1} : f32[64] activation host ; forward b
  %a.back = copy_to_space(%a.host) {host=0} : f32[64] activation ; backward a
  %b.back = copy_to_space(%b.host) {host=0} : f32[64] activation ; backward a
  %c = add(%a.back, %b.back) : f32[64] activation ; backward b
  h@1 = copy_to_space(%c) {host=1} : state ; backward b
  %d = copy_to_space(h@1) {host=0} : f32[64] activation ; backward b
  y@1 = add(y@0, %d) : state ; backward b
)";

Program program_using(const Backend& backend) {
  std::vector<PassTiming> timings;
  return run_passes(parse_program(kProgram, ops::find), memory_passes(), {.backend = backend}, {.disabled = {"share_bytes"}},
                    timings);
}

class Spaces : public ::testing::Test {
 protected:
  std::array<float, 64> read(Executor& executor, std::string_view state) {
    std::array<float, 64> values{};
    executor.read(executor.plan().program.find_state(state), std::as_writable_bytes(std::span(values)));
    return values;
  }
  void fill_input(Executor& executor) {
    std::array<float, 64> x{};
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) - 20.0F;
    executor.write(executor.plan().program.find_state("x"), std::as_bytes(std::span(x)));
  }

  const Backend backend_ = backends::reference_backend(1);
};

TEST_F(Spaces, EveryValueRunsInItsArena) {
  const Plan plan = place(program_using(backend_));
  ASSERT_EQ(plan.host.planned_peak_bytes, Bytes(3 * 256));
  Executor executor(plan, backend_);
  EXPECT_EQ(executor.arena(MemorySpace::host).size(), plan.host.planned_peak_bytes);
  EXPECT_EQ(executor.arena().size(), plan.planned_peak_bytes);
  fill_input(executor);
  executor.run(SectionKind::micro);
  for (const std::string_view state : {"y", "h"}) {
    EXPECT_EQ(read(executor, state)[0], -40.0F) << state;
    EXPECT_EQ(read(executor, state)[63], 129.0F) << state;
  }
  EXPECT_TRUE(executor.arena(MemorySpace::host).margins_untouched());
}

TEST_F(Spaces, BothArenasAreMeasured) {
  const Plan plan = place(program_using(backend_));
  Executor executor(plan, backend_);
  fill_input(executor);
  executor.start_measuring();
  EXPECT_EQ(executor.measured_peak_bytes(MemorySpace::host), Bytes(256)) << "the state is there from the start";
  for (int i = 0; i < 2; ++i) executor.run(SectionKind::micro);
  EXPECT_EQ(executor.measured_peak_bytes(), plan.planned_peak_bytes);
  EXPECT_EQ(executor.measured_peak_bytes(MemorySpace::host), plan.host.planned_peak_bytes);
}

TEST_F(Spaces, AMemoryOfStatesAloneIsMeasuredToo) {
  Program program = parse_program(
      "program states batch 1 microbatch 1\n"
      "state x : f32[3] input\n"
      "state h : f32[3] statistic host\n"
      "section micro\n"
      "  h@1 = copy_to_space(x@0) {host=1} : state using reference_copy_to_space ; forward a\n",
      ops::find);
  const Plan plan = place(std::move(program));
  Executor executor(plan, backend_);
  executor.start_measuring();
  executor.run(SectionKind::micro);
  EXPECT_EQ(executor.measured_peak_bytes(), Bytes(12));
  EXPECT_EQ(executor.measured_peak_bytes(MemorySpace::host), Bytes(12));
}

TEST_F(Spaces, APlanWithoutHostValuesHasNoArenaThere) {
  const Plan plan = place(parse_program("program p batch 1 microbatch 1\nstate x : f32[64] input\nsection micro\n", ops::find));
  Executor executor(plan, backend_);
  EXPECT_EQ(executor.measured_peak_bytes(MemorySpace::host), Bytes(0));
  EXPECT_THROW(executor.arena(MemorySpace::host), InternalError);
}

TEST_F(Spaces, CheckingModeAcceptsASoundPlan) {
  const Plan plan = place(program_using(backend_), Bytes(64));
  Executor executor(plan, backend_);
  fill_input(executor);
  executor.run(SectionKind::micro);
  EXPECT_EQ(read(executor, "y")[63], 129.0F);
}

TEST_F(Spaces, CheckingModeCatchesAWrongPlacementInHostMemory) {
  Plan plan = place(program_using(backend_), Bytes(64));
  SectionPlan& section = plan.sections[0];
  const std::vector<std::size_t> waiting = buffers_in(section.liveness, MemorySpace::host);
  ASSERT_EQ(waiting.size(), 2U);
  section.offsets[waiting[1]] = section.offsets[waiting[0]];  // %b.host moves onto %a.host
  Executor executor(plan, backend_);
  fill_input(executor);
  try {
    executor.run(SectionKind::micro);
    FAIL() << "the overlap was not found";
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("'a.host' was changed by a node that does not write it"), std::string::npos)
        << error.what();
  }
}

// Writes one byte too many.
class Overrun : public BoundKernel {
 public:
  explicit Overrun(const KernelArguments& arguments) : out_(arguments.outputs[0]) {}
  void run() override { std::memset(out_.data, 0, static_cast<std::size_t>(out_.type.bytes().count()) + 1); }

 private:
  Operand out_;
};

TEST_F(Spaces, CheckingModeCatchesACopyThatWritesPastItsEnd) {
  static constexpr KernelDef kOverrun{
      .name = "rogue_copy",
      .op = "copy_to_space",
      .match = [](const KernelQuery&) -> KernelMatch { return Accept{}; },
      .bind = [](const KernelArguments& arguments) { return std::unique_ptr<BoundKernel>(std::make_unique<Overrun>(arguments)); },
      .takes_host = true};
  Backend backend = backend_;
  backend.kernels.insert(backend.kernels.begin(), &kOverrun);
  const Plan plan = place(program_using(backend), Bytes(64));
  Executor executor(plan, backend);
  fill_input(executor);
  try {
    executor.run(SectionKind::micro);
    FAIL() << "the overrun was not found";
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("wrote past the end of 'a.host'"), std::string::npos) << error.what();
  }
}

}  // namespace

}  // namespace snug
