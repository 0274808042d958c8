// Weights of language models under the names and in the layouts of Hugging Face's transformers.
#include "io/published_weights.h"

#include <array>
#include <fstream>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "backends/cpu/cpu.h"
#include "base/error.h"
#include "frontend/zoo.h"
#include "loose_tensors.h"
#include "plan/compile.h"
#include "support/messages.h"
#include "support/state_bytes.h"
#include "support/temporary_folder.h"
#include "train/weights.h"

namespace snug::train {
namespace {

using support::state_bytes;
using support::TemporaryFolder;

constexpr const char* kGpt = "gpt-2-64";
constexpr const char* kLlama = "llama-2-128";

Session session_of(const std::string& model, std::uint64_t seed, const CompileOptions& options = {}) {
  const Backend backend = backends::cpu_backend(1);
  return {compile(frontend::build_zoo_model(model, {.batch = 1, .length = 8}), backend, options), backend, seed};
}

// Every parameter other than it was drawn: biases begin as zeros.
Session other_weights(const std::string& model, const CompileOptions& options = {}) {
  Session session = session_of(model, 7, options);
  for (const State& state : session.plan().program.states) {
    if (state.role != Role::parameter) continue;
    std::vector<double> values = session.read_state(state.name);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += static_cast<double>(i % 64) / 256;
    session.write_state(state.name, values);
  }
  return session;
}

std::vector<float> floats_of(const std::vector<LooseTensor>& loose, const std::string& name) {
  for (const LooseTensor& tensor : loose) {
    if (tensor.info.name != name) continue;
    std::vector<float> values(tensor.bytes.size() / sizeof(float));
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
  }
  ADD_FAILURE() << name << " is not in the file";
  return {};
}

LooseTensor* find(std::vector<LooseTensor>& loose, const std::string& name) {
  for (LooseTensor& tensor : loose) {
    if (tensor.info.name == name) return &tensor;
  }
  return nullptr;
}

std::string message_of_import(const std::filesystem::path& path, Session& session, const ImportOptions& options = {}) {
  const std::vector<std::byte> before = state_bytes(session);
  try {
    import_weights(path, session, options);
  } catch (const UserError& error) {
    EXPECT_EQ(state_bytes(session), before) << "a file that is refused changes nothing";
    return error.what();
  }
  return "";
}

class PublishedWeights : public testing::TestWithParam<const char*> {
 protected:
  TemporaryFolder folder_;
};

TEST_P(PublishedWeights, HaveTheNamesAndShapesOfTransformers) {
  export_weights(folder_ / "w", session_of(GetParam(), 1));
  std::map<std::string, std::vector<std::int64_t>> published, expected;
  const io::SafetensorsReader reader(folder_ / "w");
  for (const io::TensorInfo& tensor : reader.header().tensors) published[tensor.name] = tensor.shape;
  std::ifstream file(std::string(SNUG_TEST_SOURCE_DIR) + "/golden/transformers_names.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  for (const auto& row : golden.at(GetParam())) expected[row[0]] = row[1].get<std::vector<std::int64_t>>();
  EXPECT_EQ(published, expected);
  EXPECT_EQ(reader.header().metadata.at("format"), "pt") << "transformers refuses others";
  EXPECT_EQ(reader.header().metadata.at("snug.names"), "transformers");
}

TEST_P(PublishedWeights, ComeBackWithTheSameBits) {
  Session session = other_weights(GetParam());
  export_weights(folder_ / "w", session);
  Session other = session_of(GetParam(), 1);
  EXPECT_EQ(import_weights(folder_ / "w", other), "");
  EXPECT_EQ(state_bytes(other), state_bytes(session));
}

TEST_P(PublishedWeights, ComeBackIn16Bits) {
  const CompileOptions narrow{.methods = {.precision = DType::bf16}};
  Session session = other_weights(GetParam(), narrow);
  export_weights(folder_ / "w", session);
  Session other = session_of(GetParam(), 1, narrow);
  import_weights(folder_ / "w", other);
  EXPECT_EQ(state_bytes(other), state_bytes(session));
  Session wide = session_of(GetParam(), 1);
  import_weights(folder_ / "w", wide);
  for (const State& state : session.plan().program.states) {
    if (state.role != Role::parameter) continue;
    EXPECT_EQ(wide.read_state(state.name), session.read_state(state.name)) << state.name;
  }
}

TEST_P(PublishedWeights, MayLackThePrefixOfTheInnerModelAndHaveAnother) {
  Session session = other_weights(GetParam());
  export_weights(folder_ / "w", session);
  for (const bool has_another : {false, true}) {
    auto loose = take_apart(folder_ / "w");
    for (LooseTensor& tensor : loose) {
      std::string& name = tensor.info.name;
      name = (has_another ? "module." : "") + name.substr(name.find('.') + 1);
    }
    put_together(folder_ / "v", loose);
    Session other = session_of(GetParam(), 1);
    if (has_another) {
      EXPECT_NE(message_of_import(folder_ / "v", other).find("give --init-prefix module."), std::string::npos);
    }
    EXPECT_EQ(import_weights(folder_ / "v", other, {.prefix = has_another ? "module." : ""}), "");
    EXPECT_EQ(state_bytes(other), state_bytes(session));
  }
}

TEST_P(PublishedWeights, MayBeInSeveralFiles) {
  Session session = other_weights(GetParam());
  export_weights(folder_ / "w", session);
  const auto loose = take_apart(folder_ / "w");
  // Every other tensor is in the second: parts of one weight are in both.
  std::array<std::vector<LooseTensor>, 2> shards;
  nlohmann::json index;
  for (std::size_t i = 0; i < loose.size(); ++i) {
    shards[i % 2].push_back(loose[i]);
    index["weight_map"][loose[i].info.name] = i % 2 == 0 ? "a.safetensors" : "b.safetensors";
  }
  put_together(folder_ / "a.safetensors", shards[0]);
  put_together(folder_ / "b.safetensors", shards[1]);
  write_bytes(folder_ / "model.safetensors.index.json", index.dump());
  Session other = session_of(GetParam(), 1);
  EXPECT_EQ(import_weights(folder_.path(), other), "");
  EXPECT_EQ(state_bytes(other), state_bytes(session));
}

TEST_P(PublishedWeights, ATiedClassifierIsPassedOverAndAnotherRefused) {
  Session session = other_weights(GetParam());
  export_weights(folder_ / "w", session);
  auto loose = take_apart(folder_ / "w");
  const std::string table = GetParam() == std::string(kGpt) ? "transformer.wte.weight" : "model.embed_tokens.weight";
  LooseTensor classifier = *find(loose, table);
  classifier.info.name = "lm_head.weight";
  loose.push_back(classifier);
  put_together(folder_ / "v", loose);
  Session other = session_of(GetParam(), 1);
  EXPECT_EQ(import_weights(folder_ / "v", other), "");
  EXPECT_EQ(state_bytes(other), state_bytes(session));

  loose.back().bytes.back() ^= 1;
  put_together(folder_ / "v", loose);
  const std::string source = "'" + (folder_ / "v").string() + "'";
  EXPECT_TRUE(support::mentions(message_of_import(folder_ / "v", other),
                                {source, "'lm_head.weight'", "'" + table + "'", GetParam(), "tied"}));
  EXPECT_TRUE(support::mentions(import_weights(folder_ / "v", other, {.partial = true}), {"1 tensor", "not used"}));
}

TEST_P(PublishedWeights, BuffersOfOlderFilesArePassedOver) {
  export_weights(folder_ / "w", session_of(GetParam(), 1));
  auto loose = take_apart(folder_ / "w");
  for (const char* name : {"transformer.h.0.attn.bias", "transformer.h.0.attn.masked_bias"}) {
    const std::string buffer = GetParam() == std::string(kGpt) ? name : "model.layers.0.self_attn.rotary_emb.inv_freq";
    if (find(loose, buffer) == nullptr)
      loose.push_back({{.name = buffer, .dtype = io::TensorDType::u8, .shape = {1, 1, 2, 2}}, std::string(4, '\1')});
  }
  put_together(folder_ / "v", loose);
  Session other = session_of(GetParam(), 2);
  EXPECT_EQ(import_weights(folder_ / "v", other), "");
}

TEST_P(PublishedWeights, AMissingTensorIsNamedAsTheFileWouldNameIt) {
  export_weights(folder_ / "w", session_of(GetParam(), 1));
  auto loose = take_apart(folder_ / "w");
  const std::string gone =
      GetParam() == std::string(kGpt) ? "transformer.h.1.attn.c_proj.weight" : "model.layers.1.self_attn.k_proj.weight";
  std::erase_if(loose, [&](const LooseTensor& tensor) { return tensor.info.name == gone; });
  put_together(folder_ / "v", loose);
  Session other = session_of(GetParam(), 2);
  const std::string source = "'" + (folder_ / "v").string() + "'";
  EXPECT_TRUE(support::mentions(message_of_import(folder_ / "v", other),
                                {source, "no tensor", "'" + gone + "'", GetParam(), "--init-partial"}));
}

INSTANTIATE_TEST_SUITE_P(Families, PublishedWeights, testing::Values(kGpt, kLlama), [](const auto& family) {
  return std::string(family.param).substr(0, std::string(family.param).find('-'));
});

TEST(PublishedLayouts, LayersOfGpt2AreTransposed) {
  const TemporaryFolder folder;
  Session session = other_weights(kGpt);
  export_weights(folder / "w", session);
  const auto loose = take_apart(folder / "w");
  for (const std::string layer : {"attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"}) {
    const std::string name = "h.1." + layer + ".weight";
    const Shape& shape = session.plan().program.state(session.plan().program.find_state(name)).type.shape;
    const auto rows = static_cast<std::size_t>(shape[0]), columns = static_cast<std::size_t>(shape[1]);
    const std::vector<double> weight = session.read_state(name);
    const std::vector<float> published = floats_of(loose, "transformer." + name);
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t column = 0; column < columns; ++column)
        ASSERT_EQ(published[column * rows + row], weight[row * columns + column]) << name;
    }
  }
}

TEST(PublishedLayouts, ProjectionsOfLlamaAreRowsOfOneWeight) {
  const TemporaryFolder folder;
  Session session = other_weights(kLlama);
  export_weights(folder / "w", session);
  const auto loose = take_apart(folder / "w");
  const std::string block = "model.layers.1.";
  const auto expect_rows = [&](const std::string& whole, const std::vector<std::string>& parts) {
    const std::vector<float> weight = session.read_floats(block + whole);
    std::vector<float> joined;
    for (const std::string& part : parts) {
      const std::vector<float> values = floats_of(loose, block + part);
      joined.insert(joined.end(), values.begin(), values.end());
    }
    EXPECT_EQ(joined, weight) << whole;
  };
  expect_rows("self_attn.qkv_proj.weight", {"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"});
  expect_rows("mlp.gate_up_proj.weight", {"mlp.gate_proj.weight", "mlp.up_proj.weight"});
}

// A projection that is missing begins as it was drawn, beside others that come from the file.
TEST(PublishedLayouts, APartOfAWeightMayBeMissing) {
  const TemporaryFolder folder;
  Session session = other_weights(kLlama);
  export_weights(folder / "w", session);
  auto loose = take_apart(folder / "w");
  std::erase_if(loose, [](const LooseTensor& tensor) { return tensor.info.name.ends_with("layers.0.self_attn.k_proj.weight"); });
  put_together(folder / "v", loose);
  const Backend backend = backends::cpu_backend(1);
  const Session drawn = session_of(kLlama, 2);
  Session other(drawn.plan(), backend, 2, Start::from_file);
  EXPECT_NE(import_weights(folder / "v", other, {.partial = true}).find("one ('model.layers.0.self_attn.k_proj.weight') starts"),
            std::string::npos);
  const std::string name = "model.layers.0.self_attn.qkv_proj.weight";
  std::vector<float> expected = session.read_floats(name);
  const std::vector<float> initial = drawn.read_floats(name);
  for (std::size_t i = 128 * 128; i < (128 + 64) * 128; ++i) expected[i] = initial[i];
  EXPECT_EQ(other.read_floats(name), expected);
}

// Whose square weights could be either.
TEST(PublishedLayouts, FilesOfSnugsOwnNamesAreKnownByTheirMetadata) {
  for (const char* model : {kGpt, kLlama}) {
    const TemporaryFolder folder;
    Session session = other_weights(model);
    const Program& program = session.plan().program;
    std::vector<io::TensorInfo> infos;
    std::string bytes;
    for (std::size_t i = 0; i < program.states.size(); ++i) {
      if (program.states[i].role != Role::parameter) continue;
      const StateId id(i);
      infos.push_back({.name = program.state(id).name, .dtype = io::TensorDType::f32});
      infos.back().shape.assign(program.state(id).type.shape.dims().begin(), program.state(id).type.shape.dims().end());
      session.read_logical_in_pieces(
          id, [&](std::span<const std::byte> piece) { bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size()); });
    }
    write_bytes(folder / "own", io::make_safetensors_header(infos, {{"format", "pt"}, {"model", model}}) + bytes);
    Session other = session_of(model, 1);
    EXPECT_EQ(import_weights(folder / "own", other), "");
    EXPECT_EQ(state_bytes(other), state_bytes(session));

    write_bytes(folder / "foreign", io::make_safetensors_header(infos, {{"format", "pt"}}) + bytes);
    EXPECT_NE(message_of_import(folder / "foreign", other), "");
  }
}

TEST(PublishedLayouts, StatesOfAnOptimizerHaveTheNamesOfTheirParameters) {
  const TemporaryFolder folder;
  const Session session = session_of(kGpt, 1, {.update = {.rule = "sgd", .settings = Attributes{{"momentum", 0.9}}}});
  const Program& program = session.plan().program;
  std::vector<StateId> momenta;
  for (std::size_t i = 0; i < program.states.size(); ++i) {
    if (program.states[i].purpose == "momentum") momenta.emplace_back(i);
  }
  export_states(folder / "momenta", session, momenta);
  export_weights(folder / "w", session);
  std::map<std::string, std::vector<std::int64_t>> names, of_weights;
  for (const LooseTensor& tensor : take_apart(folder / "momenta")) names[tensor.info.name] = tensor.info.shape;
  for (const LooseTensor& tensor : take_apart(folder / "w")) of_weights[tensor.info.name] = tensor.info.shape;
  EXPECT_EQ(names, of_weights);
}

}  // namespace
}  // namespace snug::train
