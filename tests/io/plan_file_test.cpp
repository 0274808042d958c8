#include "io/plan_file.h"

#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "backends/reference/reference.h"
#include "frontend/zoo.h"
#include "ir/text.h"
#include "ops/ops.h"
#include "passes/model/add_shape.h"
#include "plan/compile.h"
#include "support/files.h"
#include "support/messages.h"
#include "support/small_plan.h"
#include <snug/error.h>

namespace snug::io {

using support::bytes_of;
using support::message_of;
using support::small_plan;
using support::TemporaryFolder;
using support::write_bytes;

namespace {

namespace fs = std::filesystem;

void expect_round_trip(const Plan& plan) {
  const std::string text = print_plan(plan);
  const Plan again = parse_plan(text);
  EXPECT_EQ(print_plan(again), text);
  EXPECT_EQ(again.planned_peak_bytes, plan.planned_peak_bytes);
  EXPECT_EQ(again.persistent_bytes, plan.persistent_bytes);
  EXPECT_EQ(again.bound_bytes, plan.bound_bytes);
  EXPECT_EQ(again.red_zone, plan.red_zone);
  EXPECT_EQ(again.host.planned_peak_bytes, plan.host.planned_peak_bytes);
  EXPECT_EQ(again.host.persistent_bytes, plan.host.persistent_bytes);
  EXPECT_EQ(again.host.bound_bytes, plan.host.bound_bytes);
  for (std::size_t i = 0; i < plan.sections.size(); ++i) {
    EXPECT_EQ(again.sections[i].height, plan.sections[i].height);
    EXPECT_EQ(again.sections[i].host.height, plan.sections[i].host.height);
  }
}

TEST(PlanFile, PlansComeBackByteForByte) {
  const Backend backend = backends::cpu_backend(1);
  expect_round_trip(small_plan(backend));
  expect_round_trip(compile(frontend::build_zoo_model("wrn-10-1", {.batch = 4}), backend, {.batch = 10}));
  expect_round_trip(compile(frontend::build_zoo_model("small-cnn", {.batch = 4}), backend, {.red_zone = Bytes(128)}));
}

constexpr std::string_view kTwoMemories =
    "program two batch 1 microbatch 1\n"
    "state x : f32[9] input\n"
    "state h : f32[9] statistic host\n"
    "section micro\n"
    "  %a = copy_to_space(x@0) {host=1} : f32[9] activation host ; forward a\n"
    "  %b = copy_to_space(%a) {host=1} : f32[9] activation host ; forward a\n"
    "  %c = copy_to_space(%b) {host=0} : f32[9] activation ; forward a\n"
    "  h@1 = copy_to_space(%c) {host=1} : state ; forward a\n";

TEST(PlanFile, PlansInTwoMemoriesComeBackByteForByte) {
  for (const Bytes zone : {Bytes(0), Bytes(64)}) {
    Plan plan = place(parse_program(kTwoMemories, ops::find), zone);
    plan.methods = complete({}, plan.program);
    expect_round_trip(plan);
    EXPECT_NE(print_plan(plan).find(fmt::format(" host_persistent {}\n", plan.host.persistent_bytes.count())), std::string::npos);
  }
  const Plan offloaded =
      compile(frontend::build_zoo_model("small-cnn", {.batch = 4}), backends::cpu_backend(1), {.methods = {.offload = true}});
  ASSERT_GT(offloaded.host.planned_peak_bytes, Bytes(0));
  expect_round_trip(offloaded);
  EXPECT_EQ(print_plan(offloaded).find("host_persistent"), std::string::npos) << "no state lies there";
}

TEST(PlanFile, DamageInHostMemoryIsRefused) {
  const std::string good = print_plan(place(parse_program(kTwoMemories, ops::find)));
  const auto message = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.rfind(from), from.size(), to);
    return message_of<UserError>([&] { parse_plan(text); });
  };
  ASSERT_NE(good.find("placement red_zone 0 persistent 64 host_persistent 64\nplace states 0 0\n"), std::string::npos) << good;
  EXPECT_TRUE(support::mentions(message("place states 0 0\n", "place states 0 8\n"), {"'h'", "8", "alignment"}));
  EXPECT_TRUE(support::mentions(message(" host_persistent 64", ""), {"reach", "persistent"}));
  EXPECT_TRUE(support::mentions(message(" host_persistent 64", " host_persistent -64"), {"'-64'", "belongs"}));
  EXPECT_TRUE(support::mentions(message(" host_persistent 64", " disk_persistent 64"), {"'disk_persistent'", "ends"}));
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const char c : {'0', '9', ' ', '\n', 'x', '1'}) {
      std::string text = good;
      text[at] = c;
      try {
        EXPECT_EQ(find_violation(parse_plan(text)), std::nullopt) << text;
      } catch (const UserError&) {
        // one sentence
      }
    }
  }
}

// The periodic section was called after the one thing that it did.
TEST(PlanFile, OlderNamesOfSectionsAreRead) {
  const Plan plan = small_plan(backends::cpu_backend(1), {.nonzero = 0.5});
  const std::string text = print_plan(plan);
  std::string older = text;
  for (const std::string word : {"section ", "place "}) {
    const std::size_t at = older.find(word + "periodic");
    ASSERT_NE(at, std::string::npos) << word;
    older.replace(at + word.size(), std::string("periodic").size(), "rewire");
  }
  EXPECT_EQ(print_plan(parse_plan(older)), text);
}

TEST(PlanFile, PlansOfSeveralShapesComeBackByteForByte) {
  const auto model = [](std::int64_t batch) {
    return frontend::build_zoo_model("small-cnn", {.batch = batch, .image_size = 16});
  };
  expect_round_trip(compile(add_shape(model(10), model(7)), backends::reference_backend(1), {.batch = 17}));
}

TEST(PlanFile, TheMethodsComeBack) {
  Plan plan = small_plan(backends::cpu_backend(1));
  EXPECT_EQ(plan.methods.precision, DType::f32);
  EXPECT_EQ(parse_plan(print_plan(plan)).methods, plan.methods);
  plan.methods = {.precision = DType::bf16,
                  .nonzero = 0.1,
                  .momentum_bits = 8,
                  .microbatch = 3,
                  .checkpoint = parse_checkpoint_strategy("optimal:1234567"),
                  .compress_bits = 4,
                  .offload = true,
                  .drop_gradients = false,
                  .fuse_update = true,
                  .prepack_weights = true,
                  .workspace_limit = Bytes(65'536)};
  EXPECT_EQ(parse_plan(print_plan(plan)).methods, plan.methods);
  expect_round_trip(plan);
}

// Earlier versions wrote down three of the methods; the rest is read off the program, but for the strategy.
TEST(PlanFile, OfOlderFilesTheProgramShowsTheMethods) {
  const Backend backend = backends::cpu_backend(1);
  const Program model = frontend::build_zoo_model("small-cnn", {.batch = 4, .image_size = 16});
  const auto older = [&](const Methods& methods, const std::string& form) {
    std::string text = print_plan(compile(model, backend, {.methods = methods}));
    text.erase(text.rfind("methods "));
    return parse_plan(text + form).methods;
  };
  EXPECT_EQ(older({}, ""), (Methods{.microbatch = 4, .checkpoint = CheckpointStrategy{}}));
  EXPECT_EQ(older({}, "form precision fp16 nonzero 1 momentum_bits 32\n"),
            (Methods{.precision = DType::f16, .microbatch = 4, .checkpoint = CheckpointStrategy{}}));
  EXPECT_EQ(
      older({}, "form precision bf16 nonzero 0.5 momentum_bits 8\n"),
      (Methods{
          .precision = DType::bf16, .nonzero = 0.5, .momentum_bits = 8, .microbatch = 4, .checkpoint = CheckpointStrategy{}}));
  EXPECT_EQ(older({.fuse_update = true}, ""),
            (Methods{.microbatch = 4, .checkpoint = CheckpointStrategy{}, .fuse_update = true}));
  EXPECT_EQ(older({.compress_bits = 2}, "").compress_bits, 2);
  EXPECT_EQ(older({.checkpoint = parse_checkpoint_strategy("sqrt")}, ""), (Methods{.microbatch = 4}));
}

TEST(PlanFile, MethodsThatAreNoneAreRefused) {
  const std::string good = print_plan(small_plan(backends::cpu_backend(1)));
  const std::string start = good.substr(0, good.rfind("methods "));
  const auto message = [&](const std::string& line) { return message_of<UserError>([&] { parse_plan(start + line + "\n"); }); };
  EXPECT_TRUE(support::mentions(message("methods precision=fp8"), {"'precision=fp8'", "method"}));
  EXPECT_TRUE(support::mentions(message("methods microbatch=3 nonzero=1.5"), {"'nonzero=1.5'", "method"}));
  EXPECT_TRUE(support::mentions(message("methods microbatch=3 microbatch=3"), {"'microbatch=3'", "method"}));
  EXPECT_TRUE(support::mentions(message("methods quantize=8"), {"'quantize=8'", "method"}));
  EXPECT_TRUE(support::mentions(message("form precision fp8 nonzero 1 momentum_bits 32"), {"precision", "'fp8'"}));
  EXPECT_TRUE(support::mentions(message("form precision fp32 nonzero 1.5 momentum_bits 32"), {"'1.5'", "belongs"}));
}

TEST(PlanFile, TextsThatAreNoPlanAreRefused) {
  const std::string good = print_plan(small_plan(backends::cpu_backend(1)));
  const auto message = [](const std::string& text) {
    const std::string sentence = message_of<UserError>([&] { parse_plan(text); });
    EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
    return sentence;
  };
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.rfind(from), from.size(), to);
  };
  EXPECT_TRUE(support::mentions(message(""), {"placement", "cut"}));
  EXPECT_TRUE(support::mentions(message(good.substr(0, good.size() / 2)), {"placement", "cut"}));
  EXPECT_TRUE(support::mentions(message(replaced("place states 0 ", "place states 8 ")), {"'scalars'", "8", "alignment"}));
  EXPECT_NE(message(replaced("place states 0 ", "place states 0 0 ")).find("where '' belongs"), std::string::npos);
  EXPECT_TRUE(support::mentions(message(replaced("place states 0 ", "place states -64 ")), {"'-64'", "belongs"}));
  EXPECT_TRUE(support::mentions(message(replaced("red_zone 0 ", "red_zone 1 ")), {"zones", "1"}));
  EXPECT_TRUE(support::mentions(message(good + "x"), {"'x'", "placement"}));
  EXPECT_NE(message("x" + good).find("line 1"), std::string::npos);
}

TEST(PlanFile, WhatItWasMadeForComesBack) {
  Plan plan = small_plan(backends::cpu_backend(1));
  EXPECT_EQ(parse_plan(print_plan(plan)).made_for, "");
  plan.made_for = "2 threads, a processor with (odd) 'signs' @ 3 GHz, oneDNN 2.6.3";
  EXPECT_EQ(parse_plan(print_plan(plan)).made_for, plan.made_for);
  expect_round_trip(plan);
}

// Every edit of a plan that is on file would compute something else, or something wrong.
TEST(PlanFile, EditedFilesAreRefused) {
  const TemporaryFolder folder;
  const fs::path path = folder / "small.plan";
  const Plan plan = small_plan(backends::cpu_backend(1));
  write_plan_file(path, plan);
  EXPECT_EQ(read_plan_file(path).planned_peak_bytes, plan.planned_peak_bytes);
  const std::string good = bytes_of(path);
  const std::size_t value = good.find("value=0.0");
  ASSERT_NE(value, std::string::npos);
  std::string edited = good;
  edited[value + 8] = '1';
  write_bytes(path, edited);
  EXPECT_TRUE(
      support::mentions(message_of<UserError>([&] { read_plan_file(path); }), {path.string(), "'snug plan --save'", "edited"}));
  EXPECT_NE(message_of<UserError>([&] { read_plan_file_of_run(path); }).find("its checksum is not"), std::string::npos);
  const std::string unsealed = good.substr(0, good.rfind("checksum "));
  write_bytes(path, unsealed);
  EXPECT_TRUE(support::mentions(message_of<UserError>([&] { read_plan_file(path); }), {"end", "checksum"}));
  EXPECT_EQ(read_plan_file_of_run(path).planned_peak_bytes, plan.planned_peak_bytes) << "as earlier versions left them";
  for (std::size_t at = 0; at < good.size(); at += 97) {
    edited = good;
    edited[at] = static_cast<char>(edited[at] ^ 1);
    write_bytes(path, edited);
    EXPECT_THROW(read_plan_file(path), UserError) << at;
  }
}

TEST(PlanFile, DamageIsRefusedOrHarmless) {
  const std::string good = print_plan(small_plan(backends::cpu_backend(1)));
  for (std::size_t at = 0; at < good.size(); at += 41) {
    for (const char c : {'0', '9', ' ', '\n', 'x'}) {
      std::string text = good;
      text[at] = c;
      try {
        const Plan plan = parse_plan(text);
        EXPECT_FALSE(find_violation(plan).has_value());
      } catch (const UserError&) {
        // as it should
      }
    }
  }
}

TEST(PlanFile, AnotherBackendsPlanIsRefused) {
  const Plan plan = small_plan(backends::cpu_backend(1));
  EXPECT_NO_THROW(check_kernels(plan, backends::cpu_backend(1)));
  const std::string message = message_of<UserError>([&] { check_kernels(plan, backends::reference_backend(1)); });
  EXPECT_NE(message.find("the reference backend has no kernel"), std::string::npos) << message;
}

TEST(PlanFile, TooLittleWorkspaceIsRefused) {
  const Backend backend = backends::cpu_backend(1);
  Plan plan = small_plan(backend);
  for (Section& section : plan.program.sections) {
    for (Node& node : section.nodes) node.workspace = ValueId::none();
  }
  const std::string message = message_of<UserError>([&] { check_kernels(plan, backend); });
  EXPECT_TRUE(support::mentions(message, {"workspace", "0"})) << message;
}

}  // namespace

}  // namespace snug::io
