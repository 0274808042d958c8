#include "train/weights.h"

#include <cstring>

#include <gtest/gtest.h>

#include "files.h"
#include "small_session.h"
#include "train/elements.h"
#include "train/safetensors.h"
#include <snug/error.h>

namespace snug::train {

namespace {

// A file's tensors taken apart, changed by `change` and put together again.
struct LooseTensor {
  TensorInfo info;
  std::string bytes;
};

std::vector<LooseTensor> take_apart(const std::filesystem::path& path) {
  const SafetensorsReader reader(path);
  std::vector<LooseTensor> loose;
  for (const TensorInfo& info : reader.header().tensors) {
    loose.push_back({info, std::string(static_cast<std::size_t>(info.bytes), '\0')});
    reader.read(info, std::as_writable_bytes(std::span(loose.back().bytes)));
  }
  return loose;
}

void put_together(const std::filesystem::path& path, const std::vector<LooseTensor>& loose) {
  std::vector<TensorInfo> infos;
  for (const LooseTensor& tensor : loose) infos.push_back(tensor.info);
  std::string bytes = make_safetensors_header(infos, {});
  for (const LooseTensor& tensor : loose) bytes += tensor.bytes;
  write_bytes(path, bytes);
}

TEST(Weights, ExportedWeightsComeBackInAnotherSession) {
  const TemporaryFolder folder;
  Session session = small_session();
  small_step(session);
  export_weights(folder / "w", session);
  Session other = small_session(/*seed=*/1);
  import_weights(folder / "w", other);
  for (const char* name : {"conv1.weight", "conv2.bias", "bn1.weight", "bn1.running_mean", "bn1.running_var", "fc.weight"})
    EXPECT_EQ(other.read_state(name), session.read_state(name)) << name;
  // What is not weights stays: the step, the momentum.
  EXPECT_EQ(other.step(), 0U);
  export_weights(folder / "v", other);
  EXPECT_EQ(bytes_of(folder / "v"), bytes_of(folder / "w"));
}

TEST(Weights, FileHasParametersAndRunningStatisticsAlone) {
  const TemporaryFolder folder;
  export_weights(folder / "w", small_session());
  std::vector<std::string> names;
  for (const LooseTensor& tensor : take_apart(folder / "w")) names.push_back(tensor.info.name);
  EXPECT_EQ(names, (std::vector<std::string>{"conv1.weight", "bn1.weight", "bn1.bias", "bn1.running_mean", "bn1.running_var",
                                             "conv2.weight", "conv2.bias", "fc.weight", "fc.bias"}));
}

TEST(Weights, EveryFloatingTypeIsConverted) {
  const TemporaryFolder folder;
  Session session = small_session();
  export_weights(folder / "w", session);
  for (const auto& [dtype, to] : {std::pair{TensorDType::f64, DType::f64}, std::pair{TensorDType::f16, DType::f16},
                                  std::pair{TensorDType::bf16, DType::bf16}}) {
    std::vector<LooseTensor> loose = take_apart(folder / "w");
    for (LooseTensor& tensor : loose) {
      std::string converted(tensor.bytes.size() / 4 * bytes_per_element(dtype), '\0');
      convert_elements(DType::f32, std::as_bytes(std::span(tensor.bytes)), to, std::as_writable_bytes(std::span(converted)));
      tensor.bytes = converted;
      tensor.info.dtype = dtype;
    }
    put_together(folder / "v", loose);
    Session other = small_session(1);
    import_weights(folder / "v", other);
    const auto expected = session.read_state("conv2.weight");
    const auto got = other.read_state("conv2.weight");
    const double tolerance = dtype == TensorDType::f64 ? 0 : dtype == TensorDType::f16 ? 0x1p-11 : 0x1p-8;
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(got[i], expected[i], tolerance * std::abs(expected[i]) + tolerance * 0x1p-14) << name_of(dtype);
  }
}

TEST(Weights, BatchCountersOfPyTorchArePassedOver) {
  const TemporaryFolder folder;
  Session session = small_session();
  export_weights(folder / "w", session);
  auto loose = take_apart(folder / "w");
  loose.push_back({{.name = "bn1.num_batches_tracked", .dtype = TensorDType::i64}, std::string(8, '\0')});
  put_together(folder / "v", loose);
  EXPECT_NO_THROW(import_weights(folder / "v", session));
}

// The tensor with another first dimension.
void set_rows(LooseTensor& tensor, std::int64_t rows) {
  const std::size_t row_bytes = tensor.bytes.size() / static_cast<std::size_t>(tensor.info.shape[0]);
  tensor.bytes.resize(row_bytes * static_cast<std::size_t>(rows), '\x3F');
  tensor.info.shape[0] = rows;
}

constexpr std::size_t kFcWeight = 7;
constexpr std::size_t kFcBias = 8;

TEST(Weights, ClassifierOfAnotherNumberOfClassesStartsAfresh) {
  const TemporaryFolder folder;
  Session session = small_session();
  small_step(session);
  export_weights(folder / "w", session);
  for (const std::int64_t rows : {3, 1000}) {
    auto loose = take_apart(folder / "w");
    const std::int64_t classes = loose[kFcBias].info.shape[0];
    set_rows(loose[kFcWeight], rows);
    set_rows(loose[kFcBias], rows);
    put_together(folder / "v", loose);
    Session other = small_session(/*seed=*/1);
    const auto fresh_weight = other.read_state("fc.weight");
    const auto fresh_bias = other.read_state("fc.bias");
    EXPECT_EQ(import_weights(folder / "v", other), "fc.weight and fc.bias of '" + (folder / "v").string() + "' are for " +
                                                       std::to_string(rows) + " classes, this run has " +
                                                       std::to_string(classes) + ": they start from random values");
    EXPECT_EQ(other.read_state("fc.weight"), fresh_weight);
    EXPECT_EQ(other.read_state("fc.bias"), fresh_bias);
    for (const char* name : {"conv1.weight", "conv2.bias", "bn1.weight", "bn1.running_mean"})
      EXPECT_EQ(other.read_state(name), session.read_state(name)) << name;
  }
  EXPECT_EQ(import_weights(folder / "w", session), "") << "nothing is left out where nothing differs";
}

TEST(Weights, WhatDiffersInMoreThanTheNumberOfClassesIsRefused) {
  const TemporaryFolder folder;
  Session session = small_session();
  export_weights(folder / "w", session);
  const auto before = all_bytes(session);
  const auto refused = [&](auto change) {
    auto loose = take_apart(folder / "w");
    change(loose);
    put_together(folder / "v", loose);
    const std::string text = message_of<UserError>([&] { import_weights(folder / "v", session); });
    EXPECT_NE(text.find("; use weights of the same model"), std::string::npos) << text;
    EXPECT_EQ(all_bytes(session), before) << text;
  };
  // Weight and bias do not agree.
  refused([](auto& t) {
    set_rows(t[kFcWeight], 3);
    set_rows(t[kFcBias], 4);
  });
  refused([](auto& t) { set_rows(t[kFcWeight], 3); });
  // Another layer differs, too.
  refused([](auto& t) {
    set_rows(t[kFcWeight], 3);
    set_rows(t[kFcBias], 3);
    set_rows(t[0], 3);
  });
  // A layer that is not the classifier.
  refused([](auto& t) { set_rows(t[0], 3); });
  // The classifier takes other inputs.
  refused([](auto& t) {
    std::swap(t[kFcWeight].info.shape[0], t[kFcWeight].info.shape[1]);
    set_rows(t[kFcBias], t[kFcWeight].info.shape[0]);
  });
  // Part of the rest is missing.
  refused([](auto& t) {
    set_rows(t[kFcWeight], 3);
    set_rows(t[kFcBias], 3);
    t.erase(t.begin());
  });
}

TEST(Weights, WhatDoesNotFitIsRefusedInOneSentenceAndChangesNothing) {
  const TemporaryFolder folder;
  Session session = small_session();
  export_weights(folder / "w", session);
  const auto good = take_apart(folder / "w");
  const auto before = all_bytes(session);
  const std::string file = "'" + (folder / "v").string() + "'";
  const auto message = [&](auto change) {
    auto loose = good;
    change(loose);
    put_together(folder / "v", loose);
    std::string text = message_of<UserError>([&] { import_weights(folder / "v", session); });
    EXPECT_EQ(all_bytes(session), before) << text;
    return text;
  };
  EXPECT_EQ(message([](auto& t) { t.erase(t.begin() + 1); }),
            file + " has no tensor 'bn1.weight' that the model 'small' needs; use weights of the same model");
  EXPECT_EQ(message([](auto& t) { t.erase(t.begin() + 1, t.begin() + 4); }),
            file + " has no tensor 'bn1.weight' and 2 more that the model 'small' needs; use weights of the same model");
  EXPECT_EQ(message([](auto& t) {
              t.push_back({{.name = "extra", .dtype = TensorDType::u8, .shape = {1}}, "x"});
            }),
            file + " has a tensor 'extra' that the model 'small' does not know; use weights of the same model");
  EXPECT_EQ(message([](auto& t) { std::swap(t[0].info.shape[2], t[0].info.shape[0]); }),
            file +
                " does not go with the model 'small': 'conv1.weight' is [3,3,16,3] instead of [16,3,3,3]; use weights of the "
                "same model");
  EXPECT_EQ(message([](auto& t) { t[8].info.dtype = TensorDType::i32; }),
            file + ": tensor 'fc.bias' is I32; weights are F64, F32, F16 or BF16");
}

}  // namespace

}  // namespace snug::train
