#include "train/weights.h"

#include <cstring>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/elements.h"
#include "loose_tensors.h"
#include "small_session.h"
#include "support/messages.h"
#include <snug/error.h>

namespace snug::train {

using support::bytes_of;
using support::message_of;
using support::TemporaryFolder;

namespace {

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

TEST(Weights, MetadataSaysHowToUseThemAndIsPassedOverWhenTheyAreRead) {
  const TemporaryFolder folder;
  Session session = small_session();
  const data::Description trained{
      .height = 8, .width = 8, .class_names = {"cat", "d\"o\tg", "\xFF"}, .mean = {125.25, 0.1, 100}, .std = {63, 1, 7.5}};
  export_weights(folder / "w", session, weights_metadata(trained));
  const auto metadata = io::SafetensorsReader(folder / "w").header().metadata;
  EXPECT_EQ(metadata.at("format"), "pt");
  EXPECT_EQ(nlohmann::json::parse(metadata.at("snug.classes")), nlohmann::json({"cat", "d\"o\tg", "\uFFFD"}));
  EXPECT_EQ(metadata.at("snug.image_size"), "8");
  EXPECT_EQ(nlohmann::json::parse(metadata.at("snug.mean")), nlohmann::json(trained.mean));
  EXPECT_EQ(nlohmann::json::parse(metadata.at("snug.std")), nlohmann::json(trained.std));

  // Read as any reader does: a length, an object whose metadata are texts, and the tensors' bytes behind it.
  const std::string bytes = bytes_of(folder / "w");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  const nlohmann::json header = nlohmann::json::parse(bytes.substr(sizeof length, length));
  for (const auto& [key, value] : header.at("__metadata__").items()) EXPECT_TRUE(value.is_string()) << key;

  Session other = small_session(/*seed=*/1);
  EXPECT_EQ(import_weights(folder / "w", other), "");
  EXPECT_EQ(other.read_state("fc.weight"), session.read_state("fc.weight"));
}

TEST(Weights, EveryFloatingTypeIsConverted) {
  const TemporaryFolder folder;
  Session session = small_session();
  export_weights(folder / "w", session);
  for (const auto& [dtype, to] : {std::pair{io::TensorDType::f64, DType::f64}, std::pair{io::TensorDType::f16, DType::f16},
                                  std::pair{io::TensorDType::bf16, DType::bf16}}) {
    std::vector<LooseTensor> loose = take_apart(folder / "w");
    for (LooseTensor& tensor : loose) {
      std::string converted(tensor.bytes.size() / 4 * io::bytes_per_element(dtype), '\0');
      io::convert_elements(DType::f32, std::as_bytes(std::span(tensor.bytes)), to, std::as_writable_bytes(std::span(converted)));
      tensor.bytes = converted;
      tensor.info.dtype = dtype;
    }
    put_together(folder / "v", loose);
    Session other = small_session(1);
    import_weights(folder / "v", other);
    const auto expected = session.read_state("conv2.weight");
    const auto got = other.read_state("conv2.weight");
    const double tolerance = dtype == io::TensorDType::f64 ? 0 : dtype == io::TensorDType::f16 ? 0x1p-11 : 0x1p-8;
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(got[i], expected[i], tolerance * std::abs(expected[i]) + tolerance * 0x1p-14) << name_of(dtype);
  }
}

TEST(Weights, BatchCountersOfPyTorchArePassedOver) {
  const TemporaryFolder folder;
  Session session = small_session();
  export_weights(folder / "w", session);
  auto loose = take_apart(folder / "w");
  loose.push_back({{.name = "bn1.num_batches_tracked", .dtype = io::TensorDType::i64}, std::string(8, '\0')});
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
  // All of the model is counted, and nothing twice.
  const std::string file = "'" + (folder / "v").string() + "'";
  EXPECT_EQ(import_weights(folder / "v", session, {.partial = true}),
            "7 of the 9 tensors of 'small' come from " + file + "; fc.weight and fc.bias of " + file +
                " are for 1000 classes, this run has 5: they start from random values");
  const auto before = all_bytes(session);
  const std::string refusal = message_of<UserError>([&] { import_weights(folder / "v", session, {.strict = true}); });
  EXPECT_NE(refusal.find("'fc.weight' is [1000"), std::string::npos) << refusal;
  EXPECT_EQ(all_bytes(session), before);
  EXPECT_EQ(import_weights(folder / "w", session, {.strict = true}), "");
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
  const std::string way_out = "; use weights of the same model, or take what fits with --init-partial";
  EXPECT_TRUE(support::mentions(message([](auto& t) { t.erase(t.begin() + 1); }),
                                {file, "no tensor 'bn1.weight' that", "'small'", way_out}));
  EXPECT_TRUE(support::mentions(message([](auto& t) { t.erase(t.begin() + 1, t.begin() + 4); }),
                                {file, "tensor", "'bn1.weight'", "2", "'small'", way_out}));
  EXPECT_TRUE(support::mentions(message([](auto& t) {
                                  t.push_back({{.name = "extra", .dtype = io::TensorDType::u8, .shape = {1}}, "x"});
                                }),
                                {file, "'extra'", "'small'", "know", way_out}));
  EXPECT_TRUE(support::mentions(message([](auto& t) { std::swap(t[0].info.shape[2], t[0].info.shape[0]); }),
                                {file, "'small'", "'conv1.weight'", "[3,3,16,3]", "[16,3,3,3]"}));
  EXPECT_EQ(message([](auto& t) { t[8].info.dtype = io::TensorDType::i32; }),
            file + ": tensor 'fc.bias' is I32; weights are F64, F32, F16 or BF16");
}

std::vector<LooseTensor> with_prefix(std::vector<LooseTensor> loose, const std::string& prefix) {
  for (LooseTensor& tensor : loose) tensor.info.name = prefix + tensor.info.name;
  return loose;
}

TEST(Weights, PrefixOfTheFilesNamesIsTakenOff) {
  const TemporaryFolder folder;
  Session session = small_session();
  small_step(session);
  export_weights(folder / "w", session);
  put_together(folder / "v", with_prefix(take_apart(folder / "w"), "model."));
  Session other = small_session(/*seed=*/1);
  EXPECT_EQ(import_weights(folder / "v", other, {.prefix = "model."}), "");
  export_weights(folder / "again", other);
  EXPECT_EQ(bytes_of(folder / "again"), bytes_of(folder / "w"));
}

TEST(Weights, RefusalNamesThePrefixThatTheFileHas) {
  const TemporaryFolder folder;
  Session session = small_session();
  export_weights(folder / "w", session);
  const auto good = take_apart(folder / "w");
  put_together(folder / "v", with_prefix(good, "model."));
  const std::string file = "'" + (folder / "v").string() + "'";
  const auto refusal = [&](const ImportOptions& options) {
    return message_of<UserError>([&] { import_weights(folder / "v", session, options); });
  };
  EXPECT_TRUE(support::mentions(refusal({}), {file, "'conv1.weight'", "8", "'small'", "begin", "--init-prefix"}));
  EXPECT_TRUE(support::mentions(refusal({.partial = true}), {file, "tensors", "'small'", "--init-prefix"}));
  EXPECT_TRUE(
      support::mentions(refusal({.prefix = "net."}), {file, "begins", "'net.'", "'model.conv1.weight'", "--init-prefix"}));
  auto mixed = with_prefix(good, "model.");
  mixed.push_back({{.name = "head.weight", .dtype = io::TensorDType::f32, .shape = {1}}, "1234"});
  put_together(folder / "v", mixed);
  EXPECT_TRUE(support::mentions(refusal({.prefix = "model."}), {file, "'head.weight'", "'model.'", "fits", "--init-partial"}));
}

TEST(Weights, PartialFileLeavesTheRestAtInitialValuesAndSaysHowMany) {
  const TemporaryFolder folder;
  Session session = small_session();
  small_step(session);
  export_weights(folder / "w", session);
  auto loose = take_apart(folder / "w");
  loose.erase(loose.begin() + 1, loose.begin() + 3);  // bn1.weight, bn1.bias
  for (LooseTensor& tensor : loose) tensor.info.name = "net." + tensor.info.name;
  loose.push_back({{.name = "net.extra", .dtype = io::TensorDType::u8, .shape = {1}}, "x"});
  loose.push_back(
      {{.name = "conv1.weight", .dtype = io::TensorDType::u8, .shape = {1}}, "x"});  // without the prefix: another one
  put_together(folder / "v", loose);
  const Backend backend = backends::cpu_backend(1);
  Session partial(small_plan(backend), backend, /*seed=*/1, Start::from_file);
  EXPECT_TRUE(support::mentions(import_weights(folder / "v", partial, {.prefix = "net.", .partial = true}),
                                {"7", "9", "'small'", (folder / "v").string(), "2", "'bn1.weight'", "1", "initial"}));
  Session drawn = small_session(/*seed=*/1);
  for (const char* name : {"bn1.weight", "bn1.bias"}) EXPECT_EQ(partial.read_state(name), drawn.read_state(name)) << name;
  for (const char* name : {"conv1.weight", "conv2.weight", "conv2.bias", "bn1.running_mean", "fc.weight", "fc.bias"})
    EXPECT_EQ(partial.read_state(name), session.read_state(name)) << name;
  EXPECT_GT(small_step(partial), 0);
}

TEST(Weights, PartialFileOfAnotherShapeIsRefused) {
  const TemporaryFolder folder;
  Session session = small_session();
  export_weights(folder / "w", session);
  auto loose = take_apart(folder / "w");
  std::swap(loose[0].info.shape[2], loose[0].info.shape[0]);
  put_together(folder / "v", loose);
  EXPECT_TRUE(support::mentions(message_of<UserError>([&] { import_weights(folder / "v", session, {.partial = true}); }),
                                {"'" + (folder / "v").string() + "'", "'small'", "'conv1.weight'", "[3,3,16,3]", "[16,3,3,3]"}));
}

// A tensor of many pieces, narrower and wider than the model's numbers, in a library's layout and in plain ones: as one that is
// converted and written whole.
TEST(Weights, PiecesHaveTheBitsOfWholeTensors) {
  const TemporaryFolder folder;
  const SmallModel large{.channels = 144, .classes = 1000};
  Session session = small_session(7, large);
  export_weights(folder / "w", session);
  for (const DType model : {DType::f32, DType::bf16}) {
    for (const auto& [dtype, in_file] :
         {std::pair{io::TensorDType::f64, DType::f64}, std::pair{io::TensorDType::f32, DType::f32},
          std::pair{io::TensorDType::f16, DType::f16}, std::pair{io::TensorDType::bf16, DType::bf16}}) {
      auto loose = take_apart(folder / "w");
      for (LooseTensor& tensor : loose) {
        std::string converted(tensor.bytes.size() / 4 * io::bytes_per_element(dtype), '\0');
        io::convert_elements(DType::f32, std::as_bytes(std::span(tensor.bytes)), in_file,
                             std::as_writable_bytes(std::span(converted)));
        tensor.bytes = converted;
        tensor.info.dtype = dtype;
      }
      put_together(folder / "v", loose);
      const SmallModel other{.dtype = model, .channels = large.channels, .classes = large.classes};
      Session pieces = small_session(1, other);
      import_weights(folder / "v", pieces);
      Session whole = small_session(1, other);
      for (const LooseTensor& tensor : loose) {
        const StateId id = whole.plan().program.find_state(tensor.info.name);
        std::vector<std::byte> bytes(whole.logical_bytes(id));
        io::convert_elements(in_file, std::as_bytes(std::span(tensor.bytes)), whole.plan().program.state(id).type.dtype, bytes);
        whole.write_logical(id, bytes);
      }
      EXPECT_EQ(all_bytes(pieces), all_bytes(whole)) << name_of(dtype) << " into " << name_of(model);
    }
  }
}

}  // namespace

}  // namespace snug::train
