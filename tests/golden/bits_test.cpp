// Bits that a change of structure must not change: the losses of ten steps and what they leave in every weight, momentum and
// statistic, by the reference kernels, whose results do not depend on the processor. bits.txt holds them.
#include <fstream>

#include "../end_to_end/trained_bits.h"
#include "backends/reference/reference.h"
#include "base/checksum.h"

namespace snug::testing {
namespace {

struct Case {
  std::string name;
  TrainedModel model;
  TrainedHow how = {};
};

TrainedModel model(std::string name, std::int64_t microbatch = 4) {
  return {.name = std::move(name), .microbatch = microbatch, .batch = 6, .image_size = 16, .steps = 10, .threads = 1};
}

TrainedModel sparse(SparseMethod method) {
  TrainedModel sparse = model("wrn-10-1");
  sparse.nonzero = 0.3;
  sparse.sparse = {.method = method, .rewire_fraction = 0.02, .threshold = 0.01};
  if (method != SparseMethod::fixed) sparse.rewire_every = 3;
  return sparse;
}

const Case kCases[] = {
    {"small-cnn", model("small-cnn")},
    {"small-cnn whole", model("small-cnn", 6)},
    {"small-cnn doubles",
     {.name = "small-cnn", .microbatch = 4, .batch = 6, .image_size = 16, .steps = 10, .threads = 1, .dtype = DType::f64}},
    {"wrn-10-1", model("wrn-10-1")},
    {"wrn-10-1 whole", model("wrn-10-1", 6)},
    {"wrn-10-1 residual-1*", model("wrn-10-1"), {.checkpoint = "residual-1*"}},
    {"wrn-10-1 optimal", model("wrn-10-1"), {.checkpoint = "optimal:200KB"}},
    {"wrn-10-1 compress 4", model("wrn-10-1"), {.with = {.compress_bits = 4}}},
    {"wrn-10-1 compress 2 no-bn", model("wrn-10-1"), {.checkpoint = "no-bn", .with = {.compress_bits = 2}}},
    {"wrn-10-1 plain sgd",
     model("wrn-10-1"),
     {.update = {.settings = ops::sgd_settings({.momentum = 0, .weight_decay = 0, .nesterov = false})}}},
    {"wrn-10-1 heavy ball", model("wrn-10-1"), {.update = {.settings = ops::sgd_settings({.nesterov = false})}}},
    {"wrn-10-1 momentum-bits 8", model("wrn-10-1"), {.update = {.settings = ops::sgd_settings({.momentum_bits = 8})}}},
    {"wrn-10-1 clip-norm 1", model("wrn-10-1"), {.update = {.clip_norm = 1}}},
    {"wrn-10-1 momentum-bits 8 clip-norm 1",
     model("wrn-10-1"),
     {.update = {.settings = ops::sgd_settings({.momentum_bits = 8}), .clip_norm = 1}}},
    {"wrn-10-1 adamw", model("wrn-10-1"), {.update = {.rule = "adamw"}}},
    {"wrn-10-1 adamw moment-bits 16 clip-norm 1",
     model("wrn-10-1"),
     {.update = {.rule = "adamw", .settings = {{"moment_bits", std::int64_t{16}}}, .clip_norm = 1, .stochastic_rounding = true}}},
    {"wrn-10-1 adamw moment-bits 8",
     model("wrn-10-1"),
     {.update = {.rule = "adamw", .settings = {{"moment_bits", std::int64_t{8}}}}}},
    {"wrn-10-1 drop-gradients",
     model("wrn-10-1"),
     {.with = {.drop_gradients = true}, .update = {.settings = ops::sgd_settings({.nesterov = false})}}},
    {"wrn-10-1 fuse-update", model("wrn-10-1", 6), {.with = {.fuse_update = true}}},
    {"wrn-10-1 sparse fixed", sparse(SparseMethod::fixed)},
    {"wrn-10-1 sparse set", sparse(SparseMethod::set)},
    {"wrn-10-1 sparse dsr", sparse(SparseMethod::dsr)},
    {"wrn-10-1 sparse dsr momentum-bits 8",
     sparse(SparseMethod::dsr),
     {.update = {.settings = ops::sgd_settings({.momentum_bits = 8})}}},
    {"wrn-10-1 sparse dsr adamw", sparse(SparseMethod::dsr), {.update = {.rule = "adamw"}}},
    {"preresnet-20 sqrt", model("preresnet-20"), {.checkpoint = "sqrt"}},
    {"dropout-network", model("dropout-network")},
    {"dropout-network whole", model("dropout-network", 6)},
    {"dropout-network log", model("dropout-network"), {.checkpoint = "log"}},
};

std::string digest(std::span<const std::byte> bytes) {
  Crc64 crc;
  crc.update(bytes);
  return fmt::format("{:016x}", crc.value());
}

std::string golden_of(const std::string& name) {
  std::ifstream file(SNUG_TEST_SOURCE_DIR "/golden/bits.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name + ":")) return line;
  }
  return {};
}

class GoldenBits : public ::testing::TestWithParam<Case> {};

TEST_P(GoldenBits, AreAsTheyWere) {
  const auto& [name, model, how] = GetParam();
  const TrainedBits bits = trained(model, how, backends::reference_backend(1));
  EXPECT_NE(bits.losses.front(), bits.losses.back());
  const std::string now = fmt::format("{}: losses {} states {} in {} bytes", name, digest(std::as_bytes(std::span(bits.losses))),
                                      digest(bits.states), bits.states.size());
  if (const char* file = std::getenv("SNUG_WRITE_GOLDENS")) std::ofstream(file, std::ios::app) << now << '\n';
  EXPECT_EQ(now, golden_of(name));
}

INSTANTIATE_TEST_SUITE_P(Bits, GoldenBits, ::testing::ValuesIn(kCases),
                         [](const auto& test) { return test_name(test.param.name); });

}  // namespace
}  // namespace snug::testing
