#include "backends/cpu/instructions.h"

#include <cstdio>
#include <cstdlib>

#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/machine.h"
#include "backends/cpu/onednn/conv2d.h"
#include "backends/cpu/onednn/onednn.h"
#include "base/error.h"
#include "ops/ops.h"
#include "support/messages.h"

namespace snug::backends::cpu {
namespace {

using Isa = dnnl::cpu_isa;

// A Xeon on the metal: CPUID describes its tiles.
constexpr TileFacts kDescribed{
    .has_tiles = true, .is_enabled = true, .largest_leaf = 0x20, .largest_palette = 1, .tiles = 8, .rows = 16, .row_bytes = 64};
// The same in a virtual machine that ends CPUID one leaf too early.
constexpr TileFacts kNotDescribed{.has_tiles = true, .is_enabled = true, .largest_leaf = 0x1c};
// A Zen 4.
constexpr TileFacts kWithoutTiles{.largest_leaf = 0x10};

AskedInstructions asked(const char* value) { return {.variable = "ONEDNN_MAX_CPU_ISA", .value = value}; }

TEST(Instructions, TilesThatAreDescribedAreLeftToTheLibrary) {
  for (const TileFacts& facts : {kDescribed, kWithoutTiles}) {
    const InstructionLimit limit = limit_instructions(facts, {});
    EXPECT_FALSE(limit.isa.has_value());
    EXPECT_EQ(limit.reason, "");
  }
}

TEST(Instructions, TilesThatAreNotDescribedAreLeftOut) {
  const InstructionLimit limit = limit_instructions(kNotDescribed, {});
  EXPECT_EQ(limit.isa, Isa::avx512_core_bf16);
  EXPECT_TRUE(support::mentions(limit.reason, {"AMX", "CPUID", "0x1c"}));
}

TEST(Instructions, TilesThatCannotBeUsedAreLeftOut) {
  const auto with = [](const auto& change) {
    TileFacts facts = kDescribed;
    change(facts);
    return facts;
  };
  const TileFacts unusable[] = {
      with([](TileFacts& facts) { facts.is_enabled = false; }), with([](TileFacts& facts) { facts.largest_palette = 0; }),
      with([](TileFacts& facts) { facts.tiles = 0; }),          with([](TileFacts& facts) { facts.rows = 8; }),
      with([](TileFacts& facts) { facts.row_bytes = 32; }),     with([](TileFacts& facts) { facts.largest_leaf = 0x1c; })};
  for (const TileFacts& facts : unusable) {
    EXPECT_EQ(limit_instructions(facts, {}).isa, Isa::avx512_core_bf16) << objection_to_tiles(facts).value_or("usable");
  }
}

// oneDNN reads its variable by itself; what it is told would override it.
TEST(Instructions, ALowerLimitOfTheUsersIsObeyed) {
  for (const char* lower : {"SSE41", "avx", "AVX2", "avx2_vnni", "AVX512_CORE", "AVX512_CORE_VNNI", "AVX512_core_bf16"}) {
    for (const TileFacts& facts : {kNotDescribed, kDescribed, kWithoutTiles}) {
      const InstructionLimit limit = limit_instructions(facts, asked(lower));
      EXPECT_FALSE(limit.isa.has_value()) << lower;
      EXPECT_EQ(limit.reason, std::string("ONEDNN_MAX_CPU_ISA=") + lower);
    }
  }
}

TEST(Instructions, AHigherLimitOfTheUsersDoesNotBringTheTilesBack) {
  for (const char* higher : {"ALL", "AVX512_CORE_AMX", "avx512_core_amx", "a word that oneDNN does not know", ""}) {
    EXPECT_EQ(limit_instructions(kNotDescribed, asked(higher)).isa, Isa::avx512_core_bf16) << higher;
    EXPECT_FALSE(limit_instructions(kDescribed, asked(higher)).isa.has_value()) << higher;
  }
}

// oneDNN is limited once in a process, so each of these has one of its own, in which nothing has run before.
class HeldInstructions : public ::testing::Test {
 protected:
  HeldInstructions() {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    unsetenv("ONEDNN_MAX_CPU_ISA");
    unsetenv("DNNL_MAX_CPU_ISA");
  }

  // Ends the process with what oneDNN then says that it uses.
  [[noreturn]] static void tell() {
    std::fprintf(stderr, "effective: %s.", name_of(dnnl::get_effective_cpu_isa()).c_str());
    std::exit(0);
  }
  // With the limits that the processor sets, up to AVX2: all tests of this need no more than that.
  static bool has_avx2() { return __builtin_cpu_supports("avx2") != 0; }
};

using HeldInstructionsDeathTest = HeldInstructions;

TEST_F(HeldInstructionsDeathTest, WhatOneDnnIsToldIsWhatItUses) {
  if (!has_avx2()) GTEST_SKIP() << "the processor has no AVX2";
  setenv("ONEDNN_MAX_CPU_ISA", "ALL", 1);
  EXPECT_EXIT(
      {
        hold_onednn({.isa = Isa::avx2, .reason = "a test"});
        cpu_backend(1);
        tell();
      },
      ::testing::ExitedWithCode(0), "effective: avx2\\.");
}

TEST_F(HeldInstructionsDeathTest, TheUsersLowerLimitIsWhatItUses) {
  if (!has_avx2()) GTEST_SKIP() << "the processor has no AVX2";
  for (const char* variable : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    unsetenv("ONEDNN_MAX_CPU_ISA");
    setenv(variable, "AVX2", 1);
    EXPECT_EXIT(
        {
          hold_onednn(limit_instructions(kNotDescribed, read_asked_instructions()));
          const Backend backend = cpu_backend(1);
          std::fprintf(stderr, "%s because %s, ", backend.instructions.c_str(), backend.instructions_limit.c_str());
          tell();
        },
        ::testing::ExitedWithCode(0), std::string("^avx2 because ") + variable + "=AVX2, effective: avx2\\.");
  }
}

// Whatever the processor has: never AMX where its tiles are not described.
TEST_F(HeldInstructionsDeathTest, TheUsersHigherLimitDoesNotBringTheTilesBack) {
  for (const char* higher : {"ALL", "AVX512_CORE_AMX"}) {
    setenv("ONEDNN_MAX_CPU_ISA", higher, 1);
    EXPECT_EXIT(
        {
          hold_onednn(limit_instructions(kNotDescribed, read_asked_instructions()));
          cpu_backend(1);
          tell();
        },
        ::testing::ExitedWithCode(0), "effective: (sse41|avx|avx2|avx2_vnni|avx512_core|avx512_core_vnni|avx512_core_bf16)\\.");
  }
}

// Of this machine, whatever it is: without AMX, or with tiles that are described.
TEST_F(HeldInstructionsDeathTest, TheEngineHoldsThemForEverybody) {
  EXPECT_EXIT(
      {
        engine();
        const bool uses_tiles = dnnl::get_effective_cpu_isa() == Isa::avx512_core_amx;
        std::exit(uses_tiles && objection_to_tiles(read_tile_facts()) ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(HeldInstructionsDeathTest, AProgramThatUsedOneDnnBeforeIsToldSo) {
  EXPECT_EXIT(
      {
        const bool uses_tiles = dnnl::get_effective_cpu_isa() == Isa::avx512_core_amx;  // the first use
        bool complained = false;
        try {
          hold_onednn({.isa = Isa::avx512_core_bf16, .reason = "a test"});
        } catch (const UserError&) {
          complained = true;
        }
        std::exit(complained == uses_tiles ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

// A weight that lies as AVX-512 wants it is for oneDNN's reference alone where there is only AVX2.
TEST_F(HeldInstructionsDeathTest, ALayoutOfAnotherProcessorRunsOnReferenceLoopsAndSaysSo) {
  if (__builtin_cpu_supports("avx512bw") == 0) GTEST_SKIP() << "the processor has no AVX-512";
  const auto is_reference = [] {
    const std::string layout = "ABcd16b16a";
    const Type x{.shape = {2, 32, 8, 8}, .layout = Layout::channels_last()};
    const Type w{.shape = {32, 32, 3, 3},
                 .layout = {.kind = Layout::Kind::opaque, .opaque_name = layout, .opaque_bytes = Bytes(36'864)}};
    const Attributes attributes{{"kernel", std::vector<std::int64_t>{3, 3}},
                                {"stride", std::vector<std::int64_t>{1, 1}},
                                {"padding", std::vector<std::int64_t>{1, 1}},
                                {"dilation", std::vector<std::int64_t>{1, 1}},
                                {"groups", std::int64_t{1}}};
    const std::vector<Type> inputs{x, w}, outputs{x};
    const KernelMatch match =
        onednn_conv2d.match({.op = ops::conv2d, .attributes = attributes, .inputs = inputs, .outputs = outputs, .threads = 1});
    return std::get<Accept>(match).is_reference;
  };
  setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
  EXPECT_EXIT(std::exit(is_reference() ? 0 : 1), ::testing::ExitedWithCode(0), "");
  setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE", 1);
  EXPECT_EXIT(std::exit(is_reference() ? 1 : 0), ::testing::ExitedWithCode(0), "");
}

// Figures were measured on two kinds of processors; no other is said to be faster in bf16.
TEST(ProductSpeeds, FollowTheProcessorThatTheyWereMeasuredOn) {
  const Processor zen4{.vendor = "AuthenticAMD", .family = 0x19}, xeon{.vendor = "GenuineIntel", .family = 6};
  EXPECT_NEAR(product_speeds(zen4, Isa::avx512_core_bf16).bf16, 1.9, 0.01);
  EXPECT_LT(product_speeds(xeon, Isa::avx512_core_bf16).bf16, 0.7);
  for (const Processor& unknown : {Processor{}, Processor{.vendor = "AuthenticAMD", .family = 0x1a}})
    EXPECT_EQ(product_speeds(unknown, Isa::avx512_core_bf16).bf16, 1);
  for (const Processor& any : {zen4, xeon, Processor{}}) {
    EXPECT_LT(product_speeds(any, Isa::avx512_core_amx).bf16, 0.8) << "of whole steps, not of tiles";
    EXPECT_LT(product_speeds(any, Isa::avx512_core).bf16, 0.5) << "made from several instructions";
    EXPECT_NEAR(product_speeds(any, Isa::avx2).bf16, 1, 0.1) << "through floats";
    EXPECT_NEAR(product_speeds(any, Isa::avx512_core_bf16).f16, 1, 0.1) << "through floats";
  }
}

TEST(ProductSpeeds, TheBackendHasThoseOfThisMachine) {
  const ProductSpeeds expected = product_speeds(read_processor(), effective_instructions());
  EXPECT_EQ(cpu_backend(1).product_speeds.bf16, expected.bf16);
  EXPECT_EQ(cpu_backend(1).instructions, name_of(dnnl::get_effective_cpu_isa()));
}

}  // namespace
}  // namespace snug::backends::cpu
