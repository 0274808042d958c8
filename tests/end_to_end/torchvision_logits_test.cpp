// Logits against torchvision's: ResNet-50 with weights from a formula (tests/golden), and, for
// scripts/exchange_with_torchvision.py, any model with weights from files.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "backends/cpu/cpu.h"
#include "frontend/zoo.h"
#include "io/file_io.h"
#include "io/safetensors.h"
#include "plan/compile.h"
#include "support/keep_logits.h"
#include "support/labeled.h"
#include "train/session.h"
#include "train/weights.h"

namespace snug {

namespace {

using Json = nlohmann::json;

Json golden(const std::string& name) {
  std::ifstream file(std::string(SNUG_TEST_SOURCE_DIR) + "/golden/" + name);
  return Json::parse(file);
}

// The generator of tests/golden/README.md.
double uniform(std::uint64_t stream, std::uint64_t i) {
  std::uint64_t z = (stream << 32U) + i + 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return static_cast<double>((z ^ (z >> 31U)) >> 11U) * 0x1p-53;
}

train::Session session_with_logits(const std::string& model, std::int64_t images, std::int64_t size) {
  const Backend backend = backends::cpu_backend(2);
  const Program graph = frontend::build_zoo_model(model, {.batch = images, .image_size = size, .staged_as_bytes = false});
  return {keep_logits(compile(graph, backend)), backend, 0};
}

// N,C,H,W to N,H,W,C.
std::vector<float> channels_last(const std::vector<float>& x, std::int64_t images, std::int64_t size) {
  std::vector<float> result(x.size());
  const std::int64_t pixels = size * size;
  for (std::int64_t n = 0; n < images; ++n) {
    for (std::int64_t c = 0; c < 3; ++c) {
      for (std::int64_t p = 0; p < pixels; ++p)
        result[static_cast<std::size_t>((n * pixels + p) * 3 + c)] = x[static_cast<std::size_t>((n * 3 + c) * pixels + p)];
    }
  }
  return result;
}

std::vector<double> logits_of(train::Session& session, const std::vector<float>& images) {
  const std::vector<std::int32_t> labels(static_cast<std::size_t>(session.plan().program.microbatch), 0);
  session.evaluate(support::Labeled(std::as_bytes(std::span(images)), labels, "features"));
  return session.read_state("logits");
}

double golden_weight(std::uint64_t stream, std::uint64_t i, const std::string& name, const std::vector<std::int64_t>& shape,
                     std::int64_t fan_in) {
  const double u = uniform(stream, i);
  if (shape.size() > 1) return (2.0 * u - 1.0) * std::sqrt(6.0 / static_cast<double>(fan_in));
  if (name.ends_with("running_var")) return 0.5 + u;
  if (name.ends_with(".weight")) return (name.ends_with("bn3.weight") ? 0.2 : 0.5) * (1.0 + u);
  return 0.1 * (2.0 * u - 1.0);
}

TEST(TorchvisionLogits, ResNet50WithWeightsFromAFormula) {
  const Json figures = golden("torchvision_resnet_50.json");
  const Json names = golden("torchvision_names.json")["resnet-50"];
  const std::int64_t size = figures["image_size"];
  const auto images = static_cast<std::int64_t>(figures["logits"].size());
  train::Session session = session_with_logits("resnet-50", images, size);
  for (std::uint64_t stream = 0; stream < names.size(); ++stream) {
    const std::string name = names[stream][0];
    const std::vector<std::int64_t> shape = names[stream][1];
    std::int64_t count = 1;
    for (const std::int64_t dim : shape) count *= dim;
    std::vector<double> values(static_cast<std::size_t>(count));
    for (std::uint64_t i = 0; i < values.size(); ++i) values[i] = golden_weight(stream, i, name, shape, count / shape[0]);
    session.write_state(name, values);
  }
  const std::vector<double> first = session.read_state("conv1.weight");
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(first[i], figures["first_weights"][i].get<double>());

  std::vector<float> x(static_cast<std::size_t>(images * 3 * size * size));
  for (std::uint64_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(2.0 * uniform(1000, i) - 1.0);
  const std::vector<double> logits = logits_of(session, channels_last(x, images, size));
  ASSERT_EQ(logits.size(), static_cast<std::size_t>(images) * figures["logits"][0].size());
  double worst = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double torch = figures["logits"][i / 1000][i % 1000];
    worst = std::max(worst, std::abs(logits[i] - torch));
  }
  EXPECT_LT(worst, 1e-4);  // logits lie between -2 and 3; torchvision itself in fp32 is 3e-6 away
}

std::vector<float> read_tensor(const std::filesystem::path& path, const std::string& name) {
  const io::SafetensorsReader reader(path);
  const io::TensorInfo* tensor = reader.header().find(name);
  std::vector<float> values(static_cast<std::size_t>(tensor->bytes) / sizeof(float));
  reader.read(*tensor, std::as_writable_bytes(std::span(values)));
  return values;
}

void write_logits(const std::filesystem::path& path, const std::vector<double>& logits) {
  std::vector<io::TensorInfo> tensors{
      {.name = "logits", .dtype = io::TensorDType::f64, .shape = {static_cast<std::int64_t>(logits.size())}}};
  io::AtomicFile file(path);
  const std::string header = io::make_safetensors_header(tensors, {});
  file.write(std::as_bytes(std::span(header)));
  file.write(std::as_bytes(std::span(logits)));
  file.commit();
}

// Snug's half of scripts/exchange_with_torchvision.py. The folder holds images.safetensors and torch.safetensors; left there are
// Snug's own weights and the logits that both files of weights give.
TEST(TorchvisionExchange, WeightsAndLogitsForTheScript) {
  const char* folder_name = std::getenv("SNUG_EXCHANGE_FOLDER");
  const char* model = std::getenv("SNUG_EXCHANGE_MODEL");
  if (folder_name == nullptr || model == nullptr) GTEST_SKIP() << "scripts/exchange_with_torchvision.py runs this";
  const std::filesystem::path folder = folder_name;
  const io::SafetensorsReader file(folder / "images.safetensors");
  const std::vector<std::int64_t> shape = file.header().find("images")->shape;
  const std::vector<float> images = channels_last(read_tensor(folder / "images.safetensors", "images"), shape[0], shape[2]);

  train::Session session = session_with_logits(model, shape[0], shape[2]);
  session.set_learning_rate(0.0001);
  std::vector<std::int32_t> labels;
  for (std::int32_t i = 0; i < shape[0]; ++i) labels.push_back(i);
  // Some steps, so that no weight and no statistic is what it began as; running statistics need more of them until the logits
  // are of a usual size.
  const int steps = session.plan().program.find_state("bn1.running_var").valid() ? 30 : 2;
  for (int i = 0; i < steps; ++i) session.train_step(support::Labeled(std::as_bytes(std::span(images)), labels, "features"));
  train::export_weights(folder / "snug.safetensors", session);
  write_logits(folder / "logits_of_snug.safetensors", logits_of(session, images));

  train::import_weights(folder / "torch.safetensors", session);
  write_logits(folder / "logits_of_torch.safetensors", logits_of(session, images));
}

}  // namespace

}  // namespace snug
