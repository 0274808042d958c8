// The worked example of the C++ API: a small convolutional network of our own, trained on a small set that the program draws
// itself. Ten classes: bars of five directions, in two colors, on noise.

#include <cmath>
#include <cstdio>
#include <exception>
#include <random>
#include <vector>

#include <snug/snug.h>

namespace {

constexpr int kSize = 32;
constexpr int kClasses = 10;
constexpr int kBatch = 32;

struct Batch {
  std::vector<std::uint8_t> images;  // N,H,W,C
  std::vector<std::int32_t> labels;
};

Batch draw(int examples, std::mt19937& random) {
  Batch batch;
  const auto below = [&](int bound) { return static_cast<int>(random() % static_cast<unsigned>(bound)); };
  for (int n = 0; n < examples; ++n) {
    const int label = below(kClasses);
    const double angle = (label % 5) * 3.14159265 / 5;
    const double shift = below(kSize);
    for (int y = 0; y < kSize; ++y) {
      for (int x = 0; x < kSize; ++x) {
        const double along = x * std::cos(angle) + y * std::sin(angle) + shift;
        const bool bar = std::fmod(along + 10 * kSize, 8.0) < 4.0;
        for (int c = 0; c < 3; ++c) {
          const bool lit = bar && (label < 5 ? c != 2 : c != 0);  // yellow or cyan bars
          batch.images.push_back(static_cast<std::uint8_t>((lit ? 140 : 40) + below(70)));
        }
      }
    }
    batch.labels.push_back(label);
  }
  return batch;
}

// Defined by a function, because Snug builds the model anew for every batch size it considers.
void define(snug::Layers& net) {
  // A mirrored bar points another way and would be another class, so no augmentation.
  snug::Tensor x = net.images({.height = kSize, .width = kSize, .augment = false});
  x = net.conv2d("conv1", x, {.out_channels = 12, .padding = 1});
  x = net.max_pool("pool1", net.relu("relu1", net.batch_norm("bn1", x)));
  x = net.conv2d("conv2", x, {.out_channels = 24, .padding = 1});
  x = net.max_pool("pool2", net.relu("relu2", net.batch_norm("bn2", x)));
  x = net.conv2d("conv3", x, {.out_channels = 32, .padding = 1});
  x = net.global_avg_pool("pool3", net.relu("relu3", net.batch_norm("bn3", x)));
  net.softmax_cross_entropy(net.linear("fc", x, kClasses));
}

int run() {
  const snug::Model model = snug::Model::define("bars", define);
  snug::Trainer trainer(model, {.batch = kBatch, .learning_rate = 0.05, .seed = 1});
  std::printf("model     %lld parameters\n", static_cast<long long>(model.parameter_count()));
  std::printf("planned   %.3f MB for batches of %d\n", static_cast<double>(trainer.memory().planned_peak_bytes) / 1e6, kBatch);

  std::mt19937 random(7);
  const Batch test = draw(200, random);
  const snug::StepResult before = trainer.evaluate(test.images, test.labels);

  trainer.start_measuring();
  constexpr int kSteps = 60;
  for (int step = 1; step <= kSteps; ++step) {
    const Batch batch = draw(kBatch, random);
    const snug::StepResult result = trainer.train(batch.images, batch.labels);
    if (step == 1 || step % 10 == 0)
      std::printf("step %3d  loss %.4f  accuracy %3.0f%%\n", step, result.loss, 100 * result.accuracy);
  }

  const snug::StepResult after = trainer.evaluate(test.images, test.labels);
  std::printf("measured  %.3f MB\n", static_cast<double>(trainer.measured_peak_bytes()) / 1e6);
  std::printf("test      loss %.4f -> %.4f, accuracy %.0f%% -> %.0f%%\n", before.loss, after.loss, 100 * before.accuracy,
              100 * after.accuracy);

  if (trainer.measured_peak_bytes() != trainer.memory().planned_peak_bytes) {
    std::fprintf(stderr, "the measured peak is not the planned one\n");
    return 1;
  }
  if (!(after.loss < 0.5 * before.loss)) {
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
    std::fprintf(stderr, "train_small_cnn: %s\n", error.what());
    return 1;
  }
}
