#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "conformance/backend_conformance.h"
#include "conformance/rounding_reference.h"
#include "conformance/stored_values.h"
#include "frontend/graph_builder.h"
#include "frontend/zoo.h"
#include "passes/model/narrow.h"
#include "plan/compile.h"
#include "train/session.h"

namespace snug::conformance {

namespace {

using frontend::GraphBuilder;

constexpr std::uint64_t kSeed = 11;

ModelCase zoo_model(const std::string& name, const frontend::ZooOptions& options) {
  return {.name = name,
          .build = [name, options](DType dtype) { return narrow(frontend::build_zoo_model(name, options), dtype); }};
}

// What the zoo's small models leave out: biases, pools of both kinds, flattening, dropout, group norm, label smoothing.
Program mixed_model(DType dtype) {
  GraphBuilder b("mixed", 5);
  ValueId x = b.images({.height = 12, .width = 12, .augment = true});
  x = b.conv2d("conv1", x, {.out_channels = 16, .padding = 1, .bias = true});
  x = b.max_pool("pool1", b.relu("relu1", x));
  x = b.relu("relu2", b.group_norm("gn", b.conv2d("conv2", x, {.out_channels = 24, .kernel = 1}), 4));
  x = b.avg_pool("pool2", x, {.kernel = 3, .stride = 2, .padding = 1});
  x = b.conv2d("depthwise", x, {.out_channels = 24, .padding = 1, .groups = 24});
  x = b.dropout("dropout1", x, 0.2);
  x = b.relu("relu3", b.batch_norm("bn", b.linear("fc1", b.flatten("flatten", x), 32, {.bias = false}), {.group_size = 3}));
  b.softmax_cross_entropy(b.linear("fc2", b.dropout("dropout2", x, 0.3), 7), 0.1);
  return narrow(std::move(b).finish(), dtype);
}

ValueId conv_norm(GraphBuilder& b, const std::string& name, ValueId x, const Conv2dOptions& options) {
  return b.batch_norm(name + ".bn", b.conv2d(name, x, options));
}

// ResNet's stem, a plain block and one that halves the image, small: with a million ReLUs some value is always so near to zero
// that f32 and f64 disagree about its sign, and a gradient with it.
Program residual_model(DType dtype) {
  GraphBuilder b("residual", 6);
  ValueId x = b.images({.height = 32, .width = 32, .augment = false});
  x = b.relu("stem.relu", conv_norm(b, "stem", x, {.out_channels = 16, .kernel = 7, .stride = 2, .padding = 3}));
  x = b.max_pool("pool", x, {.kernel = 3, .stride = 2, .padding = 1});
  ValueId y = b.relu("block1.relu1", conv_norm(b, "block1.conv1", x, {.out_channels = 16, .padding = 1}));
  y = conv_norm(b, "block1.conv2", y, {.out_channels = 16, .padding = 1});
  x = b.relu("block1.relu2", b.add("block1.add", y, x));
  y = b.relu("block2.relu1", conv_norm(b, "block2.conv1", x, {.out_channels = 32, .stride = 2, .padding = 1}));
  y = conv_norm(b, "block2.conv2", y, {.out_channels = 32, .padding = 1});
  x = b.add("block2.add", y, conv_norm(b, "block2.downsample", x, {.out_channels = 32, .kernel = 1, .stride = 2}));
  b.softmax_cross_entropy(b.linear("fc", b.global_avg_pool("avgpool", b.relu("block2.relu2", x)), 10));
  return narrow(std::move(b).finish(), dtype);
}

constexpr std::int64_t kTokens = 12, kVocabulary = 40, kWidth = 64;

// A block of GPT-2 and one of Llama, with dropout everywhere, that share one table for tokens and classes.
Program language_model(DType dtype) {
  GraphBuilder b("language", 5);
  const auto table = [&](const std::string& name, std::int64_t rows) {
    return b.parameter(name, {.dtype = DType::f32, .shape = {rows, kWidth}}, {.kind = Initializer::Kind::normal, .amount = 0.5});
  };
  const ValueId words = table("words", kVocabulary);
  ValueId x = b.add_positions("positions", b.embedding("embedding", b.tokens(kTokens), words), table("places", kTokens + 1));
  x = b.dropout("dropout1", x, 0.1);
  ValueId h = b.linear("qkv1", b.layer_norm("norm1", x), 3 * kWidth);
  h = b.linear("projection1", b.attention("attention1", h, {.heads = 4, .dropout = 0.2}), kWidth);
  x = b.add("add1", x, b.dropout("dropout2", h, 0.1));
  x = b.add("add2", x, b.linear("down1", b.gelu("gelu", b.linear("up1", b.layer_norm("norm2", x), 2 * kWidth)), kWidth));
  const AttentionOptions shared{.heads = 4, .kv_heads = 2};
  h = b.linear("qkv2", b.rms_norm("norm3", x), 2 * kWidth, {.bias = false});
  h = b.attention("attention2", b.rotary("rotary", h, shared), shared);
  x = b.add("add3", x, b.linear("projection2", h, kWidth, {.bias = false}));
  h = b.gated_linear_unit("gate", b.linear("up2", b.rms_norm("norm4", x), 4 * kWidth, {.bias = false}));
  x = b.add("add4", x, b.linear("down2", h, kWidth, {.bias = false}));
  b.linear_cross_entropy("head", b.layer_norm("norm5", x), words, 0.1);
  return narrow(std::move(b).finish(), dtype);
}

// Convolutions along sequences, with kernels of each row's own that look both ways, and with shared ones that look back.
Program convolutional_language_model(DType dtype) {
  GraphBuilder b("convolutions", 5);
  const ValueId words = b.parameter("words", {.dtype = DType::f32, .shape = {kVocabulary, kWidth}},
                                    {.kind = Initializer::Kind::normal, .amount = 0.5});
  ValueId x = b.embedding("embedding", b.tokens(kTokens), words);
  x = b.add(
      "add1", x,
      b.dynamic_conv_block("block", b.layer_norm("norm1", x), {.heads = 4, .kernel = 7, .causal = false, .drop_connect = 0.1}));
  x = b.add("add2", x, b.lightweight_conv("conv", b.layer_norm("norm2", x), {.heads = 8, .kernel = 15, .drop_connect = 0.1}));
  b.linear_cross_entropy("head", b.layer_norm("norm3", x), words, 0.1);
  return narrow(std::move(b).finish(), dtype);
}

std::vector<std::byte> random_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  std::uint64_t state = 1;
  for (std::byte& byte : bytes) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    byte = static_cast<std::byte>(state >> 56U);
  }
  return bytes;
}

// Forward and backward of one microbatch; the loss.
double run_micro(train::Session& session, std::uint32_t valid, double loss_scale) {
  Executor& executor = session.executor();
  const Program& program = session.plan().program;
  if (const StateId images = program.find_state("images"); images.valid())
    executor.write(images, random_bytes(static_cast<std::size_t>(program.state(images).type.bytes().count())));
  // A token's label may be none, which a loss of tokens ignores.
  const StateId tokens = program.find_state("tokens");
  const auto write_numbers = [&](StateId state, std::size_t step, std::size_t below) {
    std::vector<std::int32_t> numbers(static_cast<std::size_t>(program.state(state).type.elements()));
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = tokens.valid() && i % 11 == 5 ? -100 : static_cast<std::int32_t>(i * step % below);
    executor.write(state, std::as_bytes(std::span(numbers)));
  };
  write_numbers(program.find_state("labels"), 3, 7);
  if (tokens.valid()) write_numbers(tokens, 13, kVocabulary);
  executor.write_metrics({});
  executor.write_scalars({.seed = 5,
                          .step = 2,
                          .first_example = 3,
                          .valid_examples = valid,
                          .batch_examples = valid + 2,
                          .total_weight = valid + 2.0,
                          .loss_scale = loss_scale});
  executor.run(SectionKind::micro);
  return executor.read_metrics().loss;
}

bool is_floating(const State& state) {
  const DType dtype = state.type.dtype;
  return dtype == DType::f64 || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

double length(const std::vector<double>& vector) {
  double sum = 0;
  for (const double x : vector) sum += x * x;
  return std::sqrt(sum);
}

using States = std::map<std::string, std::vector<double>>;

// Gradients and statistics after run_micro(), by the names of the tested program.
States results_of(const train::Session& session, const Program& tested) {
  States results;
  for (const State& state : tested.states) {
    if ((state.role == Role::gradient || state.role == Role::statistic) && is_floating(state))
      results.emplace(state.name, session.read_state(state.name));
  }
  return results;
}

// |got - expected| / |expected|, both as vectors. A gradient may cancel to next to nothing.
double error_of(const std::vector<double>& got, const std::vector<double>& expected, double scale) {
  std::vector<double> difference(got.size());
  for (std::size_t i = 0; i < got.size(); ++i) difference[i] = got[i] - expected[i];
  return length(difference) / std::max(length(expected), 1e-3 * scale);
}

struct Models {
  train::Session reference, tested;
  States initial;  // parameters and statistics of both
};

// Both begin with the same parameters: those of the reference, rounded as the tested model stores them.
Models make_models(const Backend& backend, const ModelCase& test, DType dtype) {
  Backend reference = rounding_reference(dtype);
  Plan reference_plan = compile(test.build(DType::f64), reference);
  Plan tested_plan = compile(test.build(dtype), backend);
  Models models{.reference = train::Session(std::move(reference_plan), std::move(reference), kSeed),
                .tested = train::Session(std::move(tested_plan), backend, kSeed),
                .initial = {}};
  const Program& program = models.tested.plan().program;
  for (const State& state : program.states) {
    if (state.role != Role::parameter && state.role != Role::statistic) continue;
    std::vector<double> values = models.reference.read_state(state.name);
    for (double& value : values) value = rounded_to(state.type.dtype, value);
    models.reference.write_state(state.name, values);
    models.tested.write_state(state.name, values);
    models.initial.emplace(state.name, std::move(values));
  }
  return models;
}

// How far the largest gradient error of the reference itself goes when its 16-bit results are rounded up or down at random, and
// half as much again. One value that rounds otherwise moves a gradient by a tenth of its length where a ReLU or a small group of
// a norm amplifies it; a kernel that is wrong moves it by more than chance does.
double left_open(const ModelCase& test, DType dtype, const States& initial, const States& expected, double scale,
                 std::uint32_t valid) {
  constexpr int kDraws = 3;
  double worst = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    Backend reference = rounding_reference(dtype);
    Plan plan = compile(test.build(DType::f64), reference);
    train::Session session(std::move(plan), std::move(reference), kSeed);
    for (const auto& [name, values] : initial) session.write_state(name, values);
    round_stochastically(static_cast<std::uint64_t>(draw));
    run_micro(session, valid, scale);
    round_stochastically(std::nullopt);
    for (const auto& [name, values] : expected) worst = std::max(worst, error_of(session.read_state(name), values, scale));
  }
  return 1.5 * worst;
}

}  // namespace

std::vector<ModelCase> model_cases() {
  std::vector<ModelCase> cases{zoo_model("small-cnn", {.batch = 4, .image_size = 16}),
                               zoo_model("wrn-10-1", {.batch = 6, .image_size = 16, .statistics_group = 4}),
                               {.name = "residual", .build = residual_model},
                               {.name = "mixed", .build = mixed_model, .valid = 4},
                               {.name = "language", .build = language_model, .valid = 4},
                               {.name = "convolutions", .build = convolutional_language_model, .valid = 4}};
  return cases;
}

ModelComparison compare(const Backend& backend, const ModelCase& test, DType dtype, double tolerance) {
  ModelComparison result;
  Models models = make_models(backend, test, dtype);
  const Program& program = models.tested.plan().program;
  const auto valid = static_cast<std::uint32_t>(test.valid == 0 ? program.microbatch : test.valid);
  const double scale = dtype == DType::f16 ? 128 : 1;
  const double expected_loss = run_micro(models.reference, valid, scale);
  const double loss = run_micro(models.tested, valid, scale);
  if (!(std::abs(loss - expected_loss) <= tolerance * std::abs(expected_loss)))
    result.complaints.push_back(fmt::format("the loss is {}, not {}", loss, expected_loss));

  const States got = results_of(models.tested, program);
  const States expected = results_of(models.reference, program);
  const bool in_16_bits = bits_per_element(dtype) == 16;
  const double allowed = std::max(tolerance, in_16_bits ? left_open(test, dtype, models.initial, expected, scale, valid) : 0);
  for (const auto& [name, values] : got) {
    const double error = error_of(values, expected.at(name), scale);
    if (!(error <= result.worst_error)) {
      result.worst_error = std::isnan(error) ? 1e300 : error;
      result.worst_place = name;
    }
    if (!(error <= allowed))
      result.complaints.push_back(fmt::format("'{}' is off by {:.3g} of its length; {:.3g} are allowed", name, error, allowed));
  }
  return result;
}

}  // namespace snug::conformance
