// Snug's half of against_transformers.py: one forward and backward pass of a language model with given weights on given tokens.
//
//   parity gpt2 --weights folder --batch batch.safetensors --out results --device cuda
//
// The batch has `tokens` and `labels`, i32 [examples, length]. Left in the folder `results` are logits.safetensors (`logits`, f32
// [examples, length, vocabulary]), gradients.safetensors and weights.safetensors, both with the names and layouts of weights that
// are exported; the loss is printed as a JSON line. Everything is computed in fp32, without TF32.
#include <cstdio>
#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "backends/cpu/cpu.h"
#include "backends/cuda_plugin.h"
#include "base/error.h"
#include "base/threads.h"
#include "frontend/zoo.h"
#include "io/file_io.h"
#include "io/safetensors.h"
#include "ir/verify.h"
#include "passes/model/keep_scores.h"
#include "plan/compile.h"
#include "train/session.h"
#include "train/weights.h"

namespace snug {

namespace {

namespace fs = std::filesystem;

struct Options {
  std::string model;
  std::string weights;
  std::string batch;
  std::string out;
  std::int64_t vocabulary = 0;  // 0: the model's own
  std::string device = "cpu";
  int threads = 0;
};

struct TokenBatch {
  std::int64_t examples = 0, length = 0;
  std::vector<std::int32_t> tokens, labels;
};

TokenBatch read_batch(const fs::path& path) {
  const io::SafetensorsReader reader(path);
  TokenBatch batch;
  for (const auto& [name, values] : {std::pair{"tokens", &batch.tokens}, std::pair{"labels", &batch.labels}}) {
    const io::TensorInfo* tensor = reader.header().find(name);
    if (tensor == nullptr || tensor->dtype != io::TensorDType::i32 || tensor->shape.size() != 2)
      throw_user_error("'{}' needs '{}' as I32 [examples, length]", path.string(), name);
    batch.examples = tensor->shape[0];
    batch.length = tensor->shape[1];
    values->resize(static_cast<std::size_t>(batch.examples * batch.length));
    reader.read(*tensor, std::as_writable_bytes(std::span(*values)));
  }
  return batch;
}

void write_logits(const fs::path& path, const train::Session& session, const TokenBatch& batch) {
  const StateId scores = session.plan().program.scores;
  const Type& type = session.plan().program.state(scores).type;
  std::vector<io::TensorInfo> tensors{
      {.name = "logits", .dtype = io::TensorDType::f32, .shape = {batch.examples, batch.length, type.shape[1]}}};
  io::AtomicFile file(path);
  const std::string header = io::make_safetensors_header(tensors, {});
  file.write(std::as_bytes(std::span(header)));
  session.read_logical_in_pieces(scores, [&](std::span<const std::byte> piece) { file.write(piece); });
  file.commit();
}

// The losses of training never have all logits at once; here the classifier is a layer by itself.
void compute_logits(const Options& options, const Program& model, const Backend& backend, const TokenBatch& batch) {
  const CompileOptions compiled{.batch = batch.examples};
  Program program = scores_only(lower_model(model, backend, compiled));
  verify(program, "after scores_only");
  std::vector<PassTiming> timings;
  train::Session session(place(rewrite(std::move(program), backend, compiled, timings)), backend, 0, train::Start::from_file);
  train::import_weights(options.weights, session, {.strict = true});
  const std::array<data::NamedBytes, 1> inputs{
      data::NamedBytes{.name = "tokens", .bytes = std::as_bytes(std::span(batch.tokens))}};
  session.decode({.inputs = inputs, .count = static_cast<std::size_t>(batch.examples)});
  write_logits(fs::path(options.out) / "logits.safetensors", session, batch);
}

// A step of SGD with a learning rate of 0: its momentum is then the gradient, and the weights stay.
double compute_gradients(const Options& options, const Program& model, const Backend& backend, const TokenBatch& batch) {
  const ops::UpdateOptions update{.rule = "sgd", .settings = Attributes{{"momentum", 0.9}, {"weight_decay", 0.0}}};
  train::Session session(compile(model, backend, {.batch = batch.examples, .update = update}), backend, 0,
                         train::Start::from_file);
  train::import_weights(options.weights, session, {.strict = true});
  train::export_weights(fs::path(options.out) / "weights.safetensors", session);
  session.set_learning_rate(0);
  const std::array<data::NamedBytes, 2> inputs{
      data::NamedBytes{.name = "tokens", .bytes = std::as_bytes(std::span(batch.tokens))},
      data::NamedBytes{.name = "labels", .bytes = std::as_bytes(std::span(batch.labels))}};
  const train::Result result = session.train_step({.inputs = inputs, .count = static_cast<std::size_t>(batch.examples)});
  if (result.skipped) throw_user_error("the loss is {}", result.loss);
  const Program& program = session.plan().program;
  std::vector<StateId> momenta;
  for (std::size_t i = 0; i < program.states.size(); ++i) {
    if (program.states[i].purpose == "momentum") momenta.emplace_back(i);
  }
  train::export_states(fs::path(options.out) / "gradients.safetensors", session, momenta);
  return result.loss;
}

void run(const Options& options) {
  const TokenBatch batch = read_batch(options.batch);
  const Program model = frontend::build_zoo_model(
      options.model, {.batch = batch.examples, .vocabulary = options.vocabulary, .length = batch.length});
  const Backend backend = options.device == "cuda" ? backends::load_cuda_backend({.allow_tf32 = false})
                                                   : backends::cpu_backend(thread_count(options.threads));
  fs::create_directories(options.out);
  compute_logits(options, model, backend, batch);
  const double loss = compute_gradients(options, model, backend, batch);
  std::puts(nlohmann::ordered_json{{"model", options.model}, {"device", options.device}, {"loss", loss}}.dump().c_str());
}

}  // namespace

}  // namespace snug

int main(int argc, char** argv) {
  snug::Options options;
  CLI::App app("One forward and backward pass of a language model with given weights");
  app.add_option("model", options.model, "a language model of the zoo")->required();
  app.add_option("--weights", options.weights, "as for snug train --init")->required();
  app.add_option("--batch", options.batch, "a safetensors file with tokens and labels")->required();
  app.add_option("--out", options.out, "a folder for the results")->required();
  app.add_option("--vocabulary", options.vocabulary, "0: the model's own");
  app.add_option("--device", options.device)->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--threads", options.threads, "of the CPU; 0: all cores");
  CLI11_PARSE(app, argc, argv);
  try {
    snug::run(options);
    return 0;
  } catch (const snug::UserError& error) {
    fmt::print(stderr, "parity: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "parity: {}\n", error.what());
    return 1;
  }
}
