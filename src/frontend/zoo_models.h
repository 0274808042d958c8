// The builders of the zoo's models, one file per family.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/graph_builder.h"
#include "frontend/zoo.h"

namespace snug::frontend {

enum class ResidualKind { basic, bottleneck };

Program wide_resnet(const std::string& name, std::int64_t depth, std::int64_t width, const ZooOptions& options);
Program preactivation_resnet(const std::string& name, std::int64_t depth, const ZooOptions& options);
Program torchvision_resnet(const std::string& name, const std::array<int, 4>& blocks, ResidualKind kind,
                           const ZooOptions& options);
Program vgg_16(const ZooOptions& options);
Program small_cnn(const ZooOptions& options);

// The language models of the zoo, by name; nothing when none has that name.
struct LanguageModel {
  enum class Block : std::uint8_t { gpt, llama };
  Block block = Block::gpt;
  std::int64_t layers = 0, width = 0, heads = 0;
  std::int64_t context = 0;     // the most tokens of an example
  std::int64_t vocabulary = 0;  // 0: that of its data
  // Of Llama's blocks.
  std::int64_t kv_heads = 0, hidden = 0;
  double base = 0;  // of the rotations
};
inline constexpr std::int64_t kByteTokens = 256;  // the vocabulary of text whose tokens are bytes
std::optional<LanguageModel> find_language_model(std::string_view name);
Program language_model(const std::string& name, const LanguageModel& model, const ZooOptions& options);

// The positive numbers of "wrn-28-2" after the prefix "wrn-"; nothing when the name is not of that form.
std::optional<std::vector<std::int64_t>> numbers_after(std::string_view name, std::string_view prefix);

// The staged input at the given or the model's own image size.
ValueId zoo_input(GraphBuilder& builder, const ZooOptions& options, std::int64_t default_image_size);

inline std::int64_t classes_or(const ZooOptions& options, std::int64_t fallback) {
  return options.classes == 0 ? fallback : options.classes;
}

}  // namespace snug::frontend
