#include "passes/compress_activations.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "before_after.h"
#include "support/messages.h"

namespace snug::testing {
namespace {

const std::string kHeader =
    "program test batch 64 microbatch 64\n"
    "state scalars : u8[64] scalar\n"
    "state x : f32[64x32] input\n"
    "state w : f32[32x32] parameter trainable\n"
    "state w.grad : f32[32x32] gradient of w\n"
    "section micro\n";

std::string compressed(const std::string& nodes, int bits = 4) {
  const AcceptingBackend backend;
  Program program = parse_program(kHeader + nodes, ops::find);
  verify(program, "in the test's own text");
  program = compress_activations(std::move(program), {.backend = backend, .methods = {.compress_bits = bits}});
  verify(program, "after the pass");
  const std::string text = print(program);
  std::string result;
  std::size_t at = text.find("section micro\n") + std::string("section micro\n").size();
  while (at < text.size()) {
    const std::size_t end = text.find('\n', at) + 1;
    result += text.substr(at + 2, end - at - 2);
    at = end;
  }
  return result;
}

std::string made(const std::string& name, const std::string& from, const std::string& op = "linear",
                 const std::string& rest = "") {
  return "%" + name + " = " + op + "(" + from + (op == "linear" ? ", w@0" : "") + ")" + rest +
         " : f32[64x32] activation ; forward " + name + "\n";
}

std::string packed(const std::string& name, int key, int bits = 4) {
  return "%" + name + ".codes, %" + name + ".ranges = pack(%" + name + ", scalars@0) {bits=" + std::to_string(bits) +
         ", key=" + std::to_string(key) + "} : u8[" + std::to_string(256 * bits) +
         "] activation, f32[8x2] activation ; forward " + name + "\n";
}

std::string unpacked(const std::string& name, int bits = 4) {
  return "%" + name + ".unpacked = unpack(%" + name + ".codes, %" + name + ".ranges) {bits=" + std::to_string(bits) +
         ", channels_last=0, dtype=1, input_shape=[64,32]} : f32[64x32] activation ; recompute " + name + "\n";
}

// Where backward begins: what the last forward value's gradient would be.
std::string top(const std::string& last) { return "%dy = relu(%" + last + ") : f32[64x32] activation_gradient ; backward top\n"; }

std::string weight_gradient(const std::string& name, const std::string& x) {
  return "%" + name + " = linear_grad_weight(%dy, %" + x + ") : f32[32x32] gradient ; backward " + name + "\n";
}

TEST(CompressActivations, WaitsPackedBetweenItsLastForwardAndItsFirstBackwardUse) {
  const std::string forward = made("a", "x@0") + made("b", "%a") + made("c", "%b");
  const std::string backward = weight_gradient("g3", "b") + weight_gradient("g2", "a") + weight_gradient("g1", "a");
  for (const int bits : {2, 4, 8}) {
    EXPECT_EQ(compressed(forward + top("c") + backward, bits),
              made("a", "x@0") + made("b", "%a") + packed("a", 0, bits) + made("c", "%b") + packed("b", 1, bits) + top("c") +
                  unpacked("b", bits) + weight_gradient("g3", "b.unpacked") + unpacked("a", bits) +
                  weight_gradient("g2", "a.unpacked") + weight_gradient("g1", "a.unpacked"));
  }
}

TEST(CompressActivations, AValueThatIsReadAtOnceDoesNotWait) {
  const std::string nodes = made("a", "x@0") + top("a") + top("a").replace(1, 2, "dz");
  EXPECT_EQ(compressed(nodes), nodes);
}

TEST(CompressActivations, SmallValuesBitsAndStatesStayAsTheyAre) {
  const std::string nodes =
      "%s = sum_to_channels(x@0) : f32[32] activation ; forward s\n"
      "%y = linear(x@0, w@0) : f32[64x32] activation ; forward y\n"
      "%bits = sign_bits(%y) : bit[64x32] activation ; forward bits\n"
      "%z = linear(%y, w@0) : f32[64x32] activation ; forward z\n"
      "%d = relu_grad_bits(%z, %bits) : f32[64x32] activation_gradient ; backward y\n"
      "%e = linear_grad_weight(%d, x@0) : f32[32x32] gradient ; backward y\n"
      "%t = add(%s, %s) : f32[32] activation_gradient ; backward s\n";
  EXPECT_EQ(compressed(nodes), nodes);
}

TEST(CompressActivations, AReLUsGradientReadsExactBits) {
  EXPECT_EQ(compressed(made("a", "x@0") + made("r", "%a", "relu") + made("b", "%r") + top("b") + weight_gradient("g", "r") +
                       "%d = relu_grad(%dy, %r) : f32[64x32] activation_gradient ; backward r\n"),
            made("a", "x@0") + made("r", "%a", "relu") + made("b", "%r") +
                "%r.sign = sign_bits(%r) : bit[64x32] activation ; forward r\n" + packed("r", 1) + top("b") + unpacked("r") +
                weight_gradient("g", "r.unpacked") +
                "%d = relu_grad_bits(%dy, %r.sign) : f32[64x32] activation_gradient ; backward r\n");
}

TEST(CompressActivations, AValueWhoseLargestDecidesStaysExact) {
  const std::string nodes =
      "%a = reshape(x@0) {shape=[8,4,8,8]} : f32[8x4x8x8] activation ; forward a\n"
      "%m = relu(%a) : f32[8x4x8x8] activation ; forward m\n"
      "%p = max_pool(%m) {kernel=[2,2], padding=[0,0], stride=[2,2]} : f32[8x4x4x4] activation ; forward p\n"
      "%q = relu(%p) : f32[8x4x4x4] activation ; forward q\n"
      "%d = max_pool_grad(%q, %m) {kernel=[2,2], padding=[0,0], stride=[2,2]} : f32[8x4x8x8] activation_gradient ; backward p\n";
  EXPECT_EQ(compressed(nodes), nodes);
}

TEST(CompressActivations, PacksBeforeALastUseThatMayWorkInPlace) {
  EXPECT_EQ(compressed(made("a", "x@0") + made("b", "%a", "relu") + made("c", "%b") + top("c") + weight_gradient("g", "a")),
            made("a", "x@0") + packed("a", 0) + made("b", "%a", "relu") + made("c", "%b") + top("c") + unpacked("a") +
                weight_gradient("g", "a.unpacked"));
}

TEST(CompressActivations, ClonesStartFromWhatWasUnpacked) {
  const std::string again = "%b.again = linear(%a, w@0) : f32[64x32] activation ; recompute b\n";
  EXPECT_EQ(compressed(made("a", "x@0") + made("b", "%a") + made("c", "%b") + top("c") + again + weight_gradient("g", "b.again") +
                       weight_gradient("h", "a")),
            made("a", "x@0") + made("b", "%a") + packed("a", 0) + made("c", "%b") + top("c") + unpacked("a") +
                "%b.again = linear(%a.unpacked, w@0) : f32[64x32] activation ; recompute b\n" + weight_gradient("g", "b.again") +
                weight_gradient("h", "a.unpacked"));
}

TEST(CompressActivations, WhatIsCheaplyMadeFromStatesIsMadeAgainExactly) {
  const std::string again = "%i.again = relu(x@0) : f32[64x32] activation ; recompute i\n";
  EXPECT_EQ(compressed(made("i", "x@0", "relu") + made("c", "%i") + top("c") + weight_gradient("g", "i")),
            made("i", "x@0", "relu") + made("c", "%i") + top("c") + again + weight_gradient("g", "i.again"));
}

TEST(CompressActivations, AViewIsMadeAgainOfWhatWasUnpacked) {
  const std::string view = "%v = reshape(%a) {shape=[32,64]} : f32[32x64] activation ; forward v\n";
  const std::string later =
      "%z = relu(%v) : f32[32x64] activation ; forward z\n%y = relu(%z) : f32[32x64] activation ; forward y\n";
  EXPECT_EQ(compressed(made("a", "x@0") + view + later + "%g = linear_grad_weight(%y, %v) : f32[64x64] gradient ; backward v\n" +
                       "%h = linear_grad_weight(%a, %a) : f32[32x32] gradient ; backward h\n"),
            made("a", "x@0") + view + packed("a", 0) + later + unpacked("a") +
                "%v.again = reshape(%a.unpacked) {shape=[32,64]} : f32[32x64] activation ; recompute v\n"
                "%g = linear_grad_weight(%y, %v.again) : f32[64x64] gradient ; backward v\n" +
                "%h = linear_grad_weight(%a.unpacked, %a.unpacked) : f32[32x32] gradient ; backward h\n");
}

TEST(CompressActivations, RunsOnlyWhenItIsAskedForAndTakesNoOtherWidth) {
  const AcceptingBackend backend;
  const std::string text = kHeader + made("a", "x@0") + made("b", "%a") + made("c", "%b") +
                           "%g = linear_grad_weight(%c, %a) : f32[32x32] gradient ; backward g\n"
                           "w.grad@1 = add(w.grad@0, %g) : state ; backward g\n";
  const auto run = [&](std::optional<std::int64_t> bits) {
    std::vector<PassTiming> timings;
    return print(run_passes(parse_program(text, ops::find), memory_passes(),
                            {.backend = backend, .methods = {.compress_bits = bits}}, {}, timings));
  };
  EXPECT_EQ(run({}).find("pack("), std::string::npos);
  EXPECT_NE(run(4).find("unpack("), std::string::npos);
  try {
    run(3);
    ADD_FAILURE() << "3 bits were taken";
  } catch (const UserError& error) {
    EXPECT_TRUE(support::mentions(error.what(), {"activations", "8", "4", "2", "3"}));
  }
}

}  // namespace
}  // namespace snug::testing
