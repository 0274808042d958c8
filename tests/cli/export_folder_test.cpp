// snug export --to FOLDER: a language model as transformers loads it.
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "file_text.h"
#include "photos.h"
#include "support/messages.h"
#include "support/temporary_folder.h"

namespace snug::cli {
namespace {

using Json = nlohmann::json;
using support::TemporaryFolder;

// A run in `run` with the tokenizer `bpe`.
void train_small(const TemporaryFolder& folder, const std::string& model) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "low lower lowest\n";
  std::ofstream(folder / "a.txt") << text;
  ASSERT_EQ(run_in(folder.path(), {"data", "learn", "a.txt", "--vocabulary", "262", "--out", "bpe"}).exit_code, 0);
  const Ended trained = run_in(folder.path(), {"train", model, "--data", "a.txt", "--tokenizer", "bpe", "--length", "16",
                                               "--batch", "2", "--steps", "2", "--out", "run"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
}

TEST(ExportFolder, OfGpt2HasWeightsConfigurationAndTokenizer) {
  const TemporaryFolder folder;
  train_small(folder, "gpt-2-64");
  const Ended exported = run_in(folder.path(), {"export", "run", "--to", "hf/"});
  EXPECT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_EQ(exported.err, "");
  EXPECT_TRUE(support::mentions(exported.out, {"hf/:", "gpt-2-64", "step 2"}));
  const Json config = Json::parse(text_of(folder / "hf/config.json"));
  const Json expected = {{"architectures", {"GPT2LMHeadModel"}},
                         {"model_type", "gpt2"},
                         {"n_layer", 2},
                         {"n_embd", 64},
                         {"n_head", 2},
                         {"n_inner", 256},
                         {"n_positions", 256},
                         {"activation_function", "gelu_new"},
                         {"layer_norm_epsilon", 1e-5},
                         {"attn_pdrop", 0.0},
                         {"embd_pdrop", 0.0},
                         {"resid_pdrop", 0.0},
                         {"vocab_size", 262},
                         {"tie_word_embeddings", true},
                         {"torch_dtype", "float32"},
                         {"bos_token_id", 261},
                         {"eos_token_id", 261}};
  EXPECT_EQ(config, expected);
  EXPECT_EQ(text_of(folder / "hf/tokenizer.json"), text_of(folder / "bpe/tokenizer.json"));
  EXPECT_EQ(Json::parse(text_of(folder / "hf/tokenizer_config.json")),
            Json({{"tokenizer_class", "PreTrainedTokenizerFast"}, {"eos_token", "<|endoftext|>"}}));

  // The folder is what a new run can begin with, and its tokenizer.
  const Ended begun = run_in(folder.path(), {"train", "gpt-2-64", "--data", "a.txt", "--tokenizer", "hf", "--init", "hf",
                                             "--length", "16", "--batch", "2", "--steps", "1", "--out", "again"});
  EXPECT_EQ(begun.exit_code, 0) << begun.err;
}

TEST(ExportFolder, OfLlamaSaysWhyThereIsNoTokenizer) {
  const TemporaryFolder folder;
  train_small(folder, "llama-2-128");
  std::filesystem::remove_all(folder / "bpe");
  std::filesystem::create_directory(folder / "hf");
  const Ended exported = run_in(folder.path(), {"export", "run", "--to", "hf"});
  EXPECT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_TRUE(support::mentions(exported.err, {"without tokenizer.json"}));
  EXPECT_FALSE(std::filesystem::exists(folder / "hf/tokenizer.json"));
  EXPECT_TRUE(std::filesystem::exists(folder / "hf/model.safetensors"));
  const Json config = Json::parse(text_of(folder / "hf/config.json"));
  const Json expected = {{"architectures", {"LlamaForCausalLM"}},
                         {"model_type", "llama"},
                         {"num_hidden_layers", 2},
                         {"hidden_size", 128},
                         {"num_attention_heads", 4},
                         {"num_key_value_heads", 2},
                         {"head_dim", 32},
                         {"intermediate_size", 352},
                         {"max_position_embeddings", 256},
                         {"hidden_act", "silu"},
                         {"rms_norm_eps", 1e-5},
                         {"rope_theta", 10'000.0},
                         {"attention_bias", false},
                         {"mlp_bias", false},
                         {"attention_dropout", 0.0},
                         {"vocab_size", 262},
                         {"tie_word_embeddings", true},
                         {"torch_dtype", "float32"},
                         {"bos_token_id", nullptr},
                         {"eos_token_id", nullptr}};
  EXPECT_EQ(config, expected);
}

}  // namespace
}  // namespace snug::cli
