#include "api/model_folder.h"

#include <optional>

#include <nlohmann/json.hpp>

#include "api/generation.h"
#include "base/error.h"
#include "data/text/bpe_files.h"
#include "data/text/bpe_learner.h"
#include "frontend/zoo_models.h"
#include "io/file_io.h"
#include "ir/loss.h"
#include "train/weights.h"

namespace snug {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

// In the words of transformers' GPT2Config, whose dropout is on unless it is told.
Json gpt_config(const frontend::LanguageModel& model) {
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"n_layer", model.layers},
          {"n_embd", model.width},
          {"n_head", model.heads},
          {"n_inner", 4 * model.width},
          {"n_positions", model.context},
          {"activation_function", "gelu_new"},
          {"layer_norm_epsilon", 1e-5},
          {"attn_pdrop", 0.0},
          {"embd_pdrop", 0.0},
          {"resid_pdrop", 0.0}};
}

Json llama_config(const frontend::LanguageModel& model) {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"num_hidden_layers", model.layers},
          {"hidden_size", model.width},
          {"num_attention_heads", model.heads},
          {"num_key_value_heads", model.kv_heads},
          {"head_dim", model.width / model.heads},
          {"intermediate_size", model.hidden},
          {"max_position_embeddings", model.context},
          {"hidden_act", "silu"},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", model.base},
          {"attention_bias", false},
          {"mlp_bias", false},
          {"attention_dropout", 0.0}};
}

std::string_view torch_dtype(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return "bfloat16";
    case DType::f16:
      return "float16";
    case DType::f64:
      return "float64";
    default:
      return "float32";
  }
}

Json config_of(const Plan& plan, std::optional<data::Token> end_of_text) {
  const auto model = *frontend::find_language_model(plan.program.name);
  Json config = model.block == frontend::LanguageModel::Block::gpt ? gpt_config(model) : llama_config(model);
  config["vocab_size"] = loss_of(plan.program).classes;
  config["tie_word_embeddings"] = true;
  config["torch_dtype"] = torch_dtype(plan.methods.precision.value_or(DType::f32));
  // Otherwise transformers takes its defaults, which may be other tokens here, or none.
  for (const char* key : {"bos_token_id", "eos_token_id"}) config[key] = end_of_text ? Json(*end_of_text) : Json();
  return config;
}

void write_json(const fs::path& path, const Json& json) { io::write_text_file(path, json.dump(2) + "\n"); }

}  // namespace

bool names_folder(const fs::path& path) {
  std::error_code ignored;
  return (!path.empty() && !path.has_filename()) || fs::is_directory(path, ignored);
}

std::string export_folder(const fs::path& folder, const train::Session& session, const settings::Recipe& recipe,
                          const data::Description& trained) {
  if (!frontend::language_model_size(session.plan().program.name))
    throw_user_error("'{}' is a folder, and only language models are exported as folders; name a file", folder.string());
  std::unique_ptr<data::Tokenizer> tokenizer;
  std::string said;
  try {
    tokenizer = open_tokenizer(recipe, trained);
  } catch (const UserError& error) {
    said = fmt::format("without tokenizer.json: {}", error.what());
  }
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw_user_error("the folder '{}' cannot be made: {}", folder.string(), error.message());
  train::export_weights(folder / "model.safetensors", session, train::weights_metadata(trained));
  if (tokenizer != nullptr && !tokenizer->is_bytes()) {
    io::write_text_file(folder / "tokenizer.json", data::print_tokenizer_json(data::read_bpe(tokenizer->name())));
    Json config{{"tokenizer_class", "PreTrainedTokenizerFast"}};
    if (tokenizer->end_of_text()) config["eos_token"] = tokenizer->bytes_of(*tokenizer->end_of_text());
    write_json(folder / "tokenizer_config.json", config);
  }
  write_json(folder / "config.json", config_of(session.plan(), tokenizer == nullptr ? std::nullopt : tokenizer->end_of_text()));
  return said;
}

}  // namespace snug
