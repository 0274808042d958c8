#include <array>
#include <cmath>

#include "base/error.h"
#include "frontend/zoo_models.h"

namespace snug::frontend {

namespace {

struct Named {
  std::string_view name;
  LanguageModel model;
};

constexpr std::int64_t kGpt2Vocabulary = 50'257;

constexpr std::array<Named, 6> kNamed{
    {{"gpt-small", {.layers = 6, .width = 128, .heads = 4, .context = 256}},
     {"gpt2", {.layers = 12, .width = 768, .heads = 12, .context = 1024, .vocabulary = kGpt2Vocabulary}},
     {"gpt2-medium", {.layers = 24, .width = 1024, .heads = 16, .context = 1024, .vocabulary = kGpt2Vocabulary}},
     {"gpt2-large", {.layers = 36, .width = 1280, .heads = 20, .context = 1024, .vocabulary = kGpt2Vocabulary}},
     {"gpt2-xl", {.layers = 48, .width = 1600, .heads = 25, .context = 1024, .vocabulary = kGpt2Vocabulary}},
     {"llama-small",
      {.block = LanguageModel::Block::llama,
       .layers = 30,
       .width = 576,
       .heads = 9,
       .context = 2048,
       .vocabulary = 49'152,
       .kv_heads = 3,
       .hidden = 1536,
       .base = 10'000}}}};

// The standard deviation that GPT-2's weights begin with; projections into the residual stream begin smaller, so that its
// variance does not grow with the depth.
constexpr double kStd = 0.02;

// What all blocks of a model have in common.
struct Blocks {
  GraphBuilder& builder;
  const LanguageModel& model;
  double projection_std = 0;

  ValueId gpt(const std::string& name, ValueId x) const {
    ValueId h = builder.layer_norm(name + ".ln_1", x);
    h = builder.linear(name + ".attn.c_attn", h, 3 * model.width, {.std = kStd});
    h = builder.attention(name + ".attn", h, {.heads = model.heads});
    x = builder.add(name + ".attn.add", x, builder.linear(name + ".attn.c_proj", h, model.width, {.std = projection_std}));
    h = builder.layer_norm(name + ".ln_2", x);
    h = builder.gelu(name + ".mlp.act", builder.linear(name + ".mlp.c_fc", h, 4 * model.width, {.std = kStd}));
    return builder.add(name + ".mlp.add", x, builder.linear(name + ".mlp.c_proj", h, model.width, {.std = projection_std}));
  }

  // Queries, keys and values come from one weight, and so do gate and value of the gated unit: each a product less.
  ValueId llama(const std::string& name, ValueId x) const {
    const AttentionOptions attention{.heads = model.heads, .kv_heads = model.kv_heads};
    const std::int64_t size = model.width / model.heads;
    ValueId h = builder.rms_norm(name + ".input_layernorm", x, 1e-5);
    h = builder.linear(name + ".self_attn.qkv_proj", h, (model.heads + 2 * model.kv_heads) * size, {.bias = false, .std = kStd});
    h = builder.attention(name + ".self_attn", builder.rotary(name + ".self_attn.rotary", h, attention, model.base), attention);
    h = builder.linear(name + ".self_attn.o_proj", h, model.width, {.bias = false, .std = projection_std});
    x = builder.add(name + ".self_attn.add", x, h);
    h = builder.rms_norm(name + ".post_attention_layernorm", x, 1e-5);
    h = builder.linear(name + ".mlp.gate_up_proj", h, 2 * model.hidden, {.bias = false, .std = kStd});
    h = builder.linear(name + ".mlp.down_proj", builder.gated_linear_unit(name + ".mlp.act", h), model.width,
                       {.bias = false, .std = projection_std});
    return builder.add(name + ".mlp.add", x, h);
  }
};

}  // namespace

std::optional<LanguageModel> find_language_model(std::string_view name) {
  for (const Named& named : kNamed) {
    if (named.name == name) return named.model;
  }
  const bool is_llama = name.starts_with("llama-");
  const auto numbers = numbers_after(name, is_llama ? "llama-" : "gpt-");
  if (!numbers || numbers->size() != 2) return std::nullopt;
  const std::int64_t layers = (*numbers)[0], width = (*numbers)[1];
  // Heads of 64 columns, or of 32 where that leaves few.
  const std::int64_t head = width % 64 == 0 && width >= 256 ? 64 : 32;
  if (width % head != 0) throw_user_error("the width {} of '{}' does not split into heads; use a multiple of 32", width, name);
  LanguageModel model{.layers = layers, .width = width, .heads = width / head, .context = 256};
  if (!is_llama) return model;
  model.block = LanguageModel::Block::llama;
  model.kv_heads = model.heads % 2 == 0 ? model.heads / 2 : model.heads;
  model.hidden = (8 * width / 3 + 31) / 32 * 32;  // as many parameters as GPT's four times the width
  model.base = 10'000;
  return model;
}

Program language_model(const std::string& name, const LanguageModel& model, const ZooOptions& options) {
  const std::int64_t own = model.vocabulary == 0 ? kByteTokens : model.vocabulary;
  const std::int64_t vocabulary = options.vocabulary == 0 ? own : options.vocabulary;
  const std::int64_t length = options.length == 0 ? model.context : options.length;
  if (length < 1 || length > model.context)
    throw_user_error("'{}' takes examples of 1 to {} tokens, not {}", name, model.context, length);
  if (vocabulary < 2) throw_user_error("a vocabulary of {} tokens is not possible; use at least 2", vocabulary);
  GraphBuilder b(name, options.batch);
  const Blocks blocks{.builder = b, .model = model, .projection_std = kStd / std::sqrt(2 * static_cast<double>(model.layers))};
  const Initializer normal{.kind = Initializer::Kind::normal, .amount = kStd};
  const auto table = [&](const std::string& table_name, std::int64_t rows) {
    return b.parameter(table_name, {.dtype = DType::f32, .shape = {rows, model.width}}, normal);
  };
  const ValueId tokens = b.tokens(length);
  // The table of tokens is the classifier too.
  if (model.block == LanguageModel::Block::gpt) {
    const ValueId words = table("wte.weight", vocabulary);
    ValueId x = b.add_positions("wpe", b.embedding("wte", tokens, words), table("wpe.weight", model.context));
    for (std::int64_t i = 0; i < model.layers; ++i) x = blocks.gpt(fmt::format("h.{}", i), x);
    b.linear_cross_entropy("lm_head", b.layer_norm("ln_f", x), words);
  } else {
    const ValueId words = table("model.embed_tokens.weight", vocabulary);
    ValueId x = b.embedding("model.embed_tokens", tokens, words);
    for (std::int64_t i = 0; i < model.layers; ++i) x = blocks.llama(fmt::format("model.layers.{}", i), x);
    b.linear_cross_entropy("lm_head", b.rms_norm("model.norm", x, 1e-5), words);
  }
  return std::move(b).finish();
}

}  // namespace snug::frontend
