// A language model of our own: two blocks with RMS norm, rotary positions, grouped heads and a gated unit. It learns to count:
// each example goes on from a random number in random steps, modulo 32.

#include <cstdint>
#include <cstdio>
#include <exception>
#include <random>
#include <string>
#include <vector>

#include <snug/snug.h>

namespace {

constexpr int kVocabulary = 32;
constexpr int kLength = 24;
constexpr int kWidth = 64;
constexpr int kHidden = 160;
constexpr int kBatch = 16;

struct Batch {
  std::vector<std::int32_t> tokens, labels;  // the label of a token is the next one

  std::vector<snug::Input> inputs() const { return {{"tokens", tokens}, {"labels", labels}}; }
};

Batch draw(int examples, std::mt19937& random) {
  Batch batch;
  for (int n = 0; n < examples; ++n) {
    const auto first = static_cast<std::int32_t>(random() % kVocabulary);
    const auto step = static_cast<std::int32_t>(1 + random() % 4);
    for (int i = 0; i < kLength; ++i) {
      batch.tokens.push_back((first + step * i) % kVocabulary);
      // Nothing says what follows the first number: a label of -100 counts nothing.
      batch.labels.push_back(i == 0 ? -100 : (first + step * (i + 1)) % kVocabulary);
    }
  }
  return batch;
}

snug::Tensor block(snug::Layers& net, const std::string& name, snug::Tensor x) {
  const snug::AttentionOptions attention{.heads = 4, .kv_heads = 2};
  constexpr int kHead = kWidth / 4;
  const snug::LinearOptions plain{.bias = false};
  snug::Tensor h = net.linear(name + ".qkv", net.rms_norm(name + ".norm1", x), (4 + 2 * 2) * kHead, plain);
  h = net.attention(name + ".attention", net.rotary(name + ".rotary", h, attention), attention);
  x = net.add(name + ".add1", x, net.linear(name + ".out", h, kWidth, plain));
  h = net.linear(name + ".up", net.rms_norm(name + ".norm2", x), 2 * kHidden, plain);
  h = net.linear(name + ".down", net.gated_linear_unit(name + ".gate", h), kWidth, plain);
  return net.add(name + ".add2", x, h);
}

void define(snug::Layers& net) {
  const snug::Tensor table =
      net.parameter("words", {kVocabulary, kWidth}, {.kind = snug::InitialValue::Kind::normal, .amount = 0.02});
  snug::Tensor x = net.embedding("embedding", net.tokens(kLength), table);
  for (const char* name : {"block1", "block2"}) x = block(net, name, x);
  // The table of words is the classifier too. Its logits never exist for all rows at a time.
  net.linear_cross_entropy("classifier", net.rms_norm("norm", x), table);
}

int run() {
  const snug::Model model = snug::Model::define("counting", define);
  const snug::TrainingOptions options{
      .batch = kBatch, .budget_bytes = 2'400'000, .learning_rate = 3e-3, .weight_decay = 0.0, .clip_norm = 1, .seed = 1};
  snug::Trainer trainer(model, options);
  const snug::MemorySummary& memory = trainer.memory();
  std::printf("planned   %.3f MB of 2.400 MB: microbatches of %lld, checkpoint %s; plain training would take %.3f MB\n",
              static_cast<double>(memory.planned_peak_bytes) / 1e6, static_cast<long long>(memory.microbatch),
              memory.checkpoint.c_str(), static_cast<double>(memory.plain_peak_bytes) / 1e6);

  std::mt19937 random(7);
  const Batch test = draw(64, random);
  const double before = trainer.evaluate(test.inputs()).loss;
  trainer.start_measuring();
  constexpr int kSteps = 150;
  for (int step = 1; step <= kSteps; ++step) {
    const snug::StepResult result = trainer.train(draw(kBatch, random).inputs());
    if (step == 1 || step % 30 == 0)
      std::printf("step %3d  loss %.4f  accuracy %3.0f%%\n", step, result.loss, 100 * result.accuracy);
  }
  const snug::StepResult after = trainer.evaluate(test.inputs());
  std::printf("measured  %.3f MB\ntest      loss %.4f -> %.4f, accuracy %.0f%%\n",
              static_cast<double>(trainer.measured_peak_bytes()) / 1e6, before, after.loss, 100 * after.accuracy);
  if (trainer.measured_peak_bytes() != memory.planned_peak_bytes) {
    std::fprintf(stderr, "the measured peak is not the planned one\n");
    return 1;
  }
  if (!(after.loss < 0.5 * before)) {
    std::fprintf(stderr, "the loss did not fall\n");
    return 1;
  }
  return 0;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
