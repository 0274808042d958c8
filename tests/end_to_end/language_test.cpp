// Language models of the zoo beside PyTorch: losses, first gradients and weights of twenty AdamW steps.
#include <cmath>

#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "backends/reference/reference.h"
#include "frontend/zoo.h"
#include "golden.h"
#include "plan/compile.h"

namespace snug {
namespace {

double length(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

// With a vector of which every element counts as much as any other.
double along(const std::vector<double>& values, std::uint64_t stream) {
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += values[i] * (2 * uniform(stream, i) - 1);
  return sum;
}

void write_large_weights(train::Session& session, const Json& parameters, double std) {
  for (std::uint64_t p = 0; p < parameters.size(); ++p) {
    const std::string name = parameters[p][0];
    std::size_t elements = 1;
    for (const std::size_t dim : parameters[p][1]) elements *= dim;
    const double middle = parameters[p][1].size() == 1 && name.ends_with(".weight") ? 1 : 0;
    std::vector<double> values(elements);
    for (std::uint64_t i = 0; i < elements; ++i) values[i] = middle + (2 * uniform(p, i) - 1) * (std * std::sqrt(3.0));
    session.write_state(name, values);
  }
}

// A bias of all keys changes no probability: its gradient is rounding alone, of which AdamW makes steps of full size.
std::vector<double> without_key_biases(const std::string& name, std::vector<double> values) {
  if (!name.ends_with("attn.c_attn.bias")) return values;
  const auto third = static_cast<std::ptrdiff_t>(values.size() / 3);
  values.erase(values.begin() + third, values.begin() + 2 * third);
  return values;
}

// A tenth of the labels is ignored.
struct Tokens {
  std::vector<std::int32_t> tokens, labels;
};
Tokens tokens_of_step(std::uint64_t step, std::size_t count, std::int64_t vocabulary) {
  const auto drawn = [&](std::uint64_t stream, std::uint64_t i) {
    return static_cast<std::int32_t>(uniform(stream + step, i) * static_cast<double>(vocabulary));
  };
  Tokens result;
  for (std::uint64_t i = 0; i < count; ++i) {
    result.tokens.push_back(drawn(1000, i));
    result.labels.push_back(uniform(3000 + step, i) < 0.1 ? data::kIgnoredLabel : drawn(2000, i));
  }
  return result;
}

double train_on_tokens(train::Session& session, const Tokens& tokens) {
  const std::array<data::NamedBytes, 2> inputs{
      data::NamedBytes{.name = "tokens", .bytes = std::as_bytes(std::span(tokens.tokens))},
      data::NamedBytes{.name = "labels", .bytes = std::as_bytes(std::span(tokens.labels))}};
  return session.train_step({.inputs = inputs, .count = static_cast<std::size_t>(session.plan().program.batch)}).loss;
}

void expect_pytorchs_steps(const std::string& model, const std::string& run, DType dtype, const Backend& backend,
                           double tolerance, std::int64_t microbatch = 0) {
  const Json figures = golden("language_adamw.json");
  const Json& setting = figures["setting"];
  const Json& expected = figures["models"][model];
  const std::int64_t batch = expected["batch"], tokens = expected["length"], vocabulary = setting["vocabulary"];
  Attributes settings;
  for (const char* name : {"beta1", "beta2", "epsilon", "weight_decay"}) settings.set(name, setting[name].get<double>());
  settings.set("decay_norms", std::int64_t{1});  // PyTorch decays every parameter of a list
  const Program graph = frontend::build_zoo_model(
      model, {.batch = microbatch == 0 ? batch : microbatch, .vocabulary = vocabulary, .length = tokens});
  train::Session session(
      compile(graph, backend,
              {.batch = batch, .methods = {.precision = dtype}, .update = {.rule = "adamw", .settings = settings}}),
      backend, 0);
  session.set_learning_rate(setting["lr"]);
  const Json& parameters = expected["parameters"];
  write_large_weights(session, parameters, setting["std"]);
  for (std::uint64_t step = 0; step < setting["steps"]; ++step) {
    const double loss = expected[run]["losses"][step];
    const double got = train_on_tokens(session, tokens_of_step(step, static_cast<std::size_t>(batch * tokens), vocabulary));
    EXPECT_NEAR(got, loss, tolerance * loss) << "step " << step + 1;
    if (step > 0) continue;
    // After one step the first moment is the gradient, but for a factor.
    const double scale = 1 - setting["beta1"].get<double>();
    for (std::uint64_t p = 0; p < parameters.size(); ++p) {
      const std::string name = parameters[p][0];
      const std::vector<double> gradient = session.read_state(name + ".first_moment");
      const double l2 = expected[run]["gradients"][name]["l2"];
      EXPECT_NEAR(length(gradient) / scale, l2, tolerance * l2) << name;
      EXPECT_NEAR(along(gradient, 4000 + p) / scale, expected[run]["gradients"][name]["along"].get<double>(), tolerance * l2)
          << name;
    }
  }
  for (const auto& [name, figure] : expected[run]["final_l2"].items()) {
    const double l2 = figure;
    EXPECT_NEAR(length(without_key_biases(name, session.read_state(name))), l2, tolerance * l2) << name;
  }
}

TEST(Language, ReferenceFollowsPyTorchInDoublePrecision) {
  expect_pytorchs_steps("llama-2-128", "fp64", DType::f64, backends::reference_backend(2), 1e-8);
}

TEST(Language, GptFollowsPyTorchInSinglePrecision) {
  expect_pytorchs_steps("gpt-small", "fp32", DType::f32, backends::cpu_backend(2), 1e-4);
}

TEST(Language, GptFollowsPyTorchInMicrobatches) {
  expect_pytorchs_steps("gpt-small", "fp32", DType::f32, backends::cpu_backend(2), 1e-4, 3);
}

TEST(Language, LlamaFollowsPyTorchInSinglePrecision) {
  expect_pytorchs_steps("llama-2-128", "fp32", DType::f32, backends::cpu_backend(2), 1e-4);
}

}  // namespace
}  // namespace snug
