#include "io/published_weights.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "base/error.h"
#include "io/weights_tensors.h"

namespace snug::io {

namespace {

using enum PublishedRows;

constexpr std::array kTransposed{PublishedPart{.ending = "", .is_transposed = true}};
constexpr std::array kQueriesKeysValues{PublishedPart{.ending = ".q_proj.weight", .rows = queries},
                                        PublishedPart{.ending = ".k_proj.weight", .rows = keys},
                                        PublishedPart{.ending = ".v_proj.weight", .rows = values}};
constexpr std::array kGateUp{PublishedPart{.ending = ".gate_proj.weight", .rows = first_half},
                             PublishedPart{.ending = ".up_proj.weight", .rows = second_half}};

// The layers of GPT-2 are Conv1D in transformers, which stores [inputs, outputs].
constexpr std::array kGptRules{PublishedRule{.ending = ".attn.c_attn.weight", .parts = kTransposed},
                               PublishedRule{.ending = ".attn.c_proj.weight", .parts = kTransposed},
                               PublishedRule{.ending = ".mlp.c_fc.weight", .parts = kTransposed},
                               PublishedRule{.ending = ".mlp.c_proj.weight", .parts = kTransposed}};
constexpr std::array<std::string_view, 2> kGptHas{"wte.weight", "h.0.attn.c_attn.weight"};
constexpr std::array<std::string_view, 2> kGptBuffers{".attn.bias", ".attn.masked_bias"};

constexpr std::array kLlamaRules{PublishedRule{.ending = ".qkv_proj.weight", .parts = kQueriesKeysValues},
                                 PublishedRule{.ending = ".gate_up_proj.weight", .parts = kGateUp}};
constexpr std::array<std::string_view, 2> kLlamaHas{"model.embed_tokens.weight", "model.layers.0.self_attn.qkv_proj.weight"};
constexpr std::array<std::string_view, 1> kLlamaBuffers{".rotary_emb.inv_freq"};

constexpr std::array kFamilies{PublishedFamily{.convention = "transformers",
                                               .has = kGptHas,
                                               .prefix = "transformer.",
                                               .inner_prefix = "transformer.",
                                               .rules = kGptRules,
                                               .buffers = kGptBuffers,
                                               .classifier = "lm_head.weight"},
                               PublishedFamily{.convention = "transformers",
                                               .has = kLlamaHas,
                                               .prefix = "",
                                               .inner_prefix = "model.",
                                               .rules = kLlamaRules,
                                               .buffers = kLlamaBuffers,
                                               .classifier = "lm_head.weight"}};

struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

Range range_of(PublishedRows rows, std::int64_t count, std::int64_t columns) {
  const std::int64_t first_value = columns + (count - columns) / 2;
  switch (rows) {
    case queries:
      return {0, columns};
    case keys:
      return {columns, first_value};
    case values:
      return {first_value, count};
    case first_half:
      return {0, count / 2};
    case second_half:
      return {count / 2, count};
    case all:
      break;
  }
  return {0, count};
}

PublishedTensor part_of(const TensorInfo& whole, std::string_view stem, StateId state, const PublishedPart& part) {
  SNUG_CHECK(whole.shape.size() == 2, "'{}' has {} dimensions, and a matrix was expected", whole.name, whole.shape.size());
  const Range rows = range_of(part.rows, whole.shape[0], whole.shape[1]);
  const std::size_t row_bytes = whole.bytes / static_cast<std::size_t>(whole.shape[0]);
  PublishedTensor tensor{.info = whole,
                         .state = state,
                         .first_byte = static_cast<std::size_t>(rows.begin) * row_bytes,
                         .is_transposed = part.is_transposed};
  if (!part.ending.empty()) tensor.info.name = std::string(stem) + std::string(part.ending);
  tensor.info.shape[0] = rows.end - rows.begin;
  tensor.info.bytes = static_cast<std::size_t>(rows.end - rows.begin) * row_bytes;
  if (part.is_transposed) std::ranges::reverse(tensor.info.shape);
  return tensor;
}

}  // namespace

const PublishedFamily* find_published_family(const Program& program) {
  std::unordered_set<std::string_view> parameters;
  for (const State& state : program.states) {
    if (state.role == Role::parameter) parameters.insert(state.name);
  }
  const auto found = std::ranges::find_if(kFamilies, [&](const PublishedFamily& family) {
    return std::ranges::all_of(family.has, [&](std::string_view name) { return parameters.contains(name); });
  });
  return found == kFamilies.end() ? nullptr : &*found;
}

std::vector<PublishedTensor> published_tensors(const PublishedFamily* family, const Program& program,
                                               std::span<const StateId> states) {
  std::vector<PublishedTensor> tensors;
  for (const StateId id : states) {
    const State& state = program.state(id);
    const std::string& name = state.owner.valid() ? program.state(state.owner).name : state.name;
    TensorInfo whole = tensor_of(state);
    whole.name = name;
    if (family == nullptr) {
      tensors.push_back({.info = std::move(whole), .state = id});
      continue;
    }
    whole.name.insert(0, family->prefix);
    const auto rule = std::ranges::find_if(family->rules, [&](const PublishedRule& each) { return name.ends_with(each.ending); });
    if (rule == family->rules.end()) {
      tensors.push_back({.info = std::move(whole), .state = id});
      continue;
    }
    const std::string_view stem = std::string_view(whole.name).substr(0, whole.name.size() - rule->ending.size());
    for (const PublishedPart& part : rule->parts) tensors.push_back(part_of(whole, stem, id, part));
  }
  return tensors;
}

}  // namespace snug::io
