#include "frontend/zoo.h"

#include <array>
#include <charconv>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "frontend/zoo_models.h"

namespace snug::frontend {

namespace {

constexpr std::array<ZooEntry, 11> kEntries{
    {{"wrn-D-K", "wide residual network of depth D = 6n+4 and width K, pre-activation, identity shortcuts (wrn-28-2)",
      "wrn-28-2"},
     {"preresnet-D",
      "pre-activation residual network of depth D: basic blocks where D = 6n+2 (preresnet-110), bottlenecks where only D = 9n+2; "
      "164 and 1001 are bottlenecks, as published",
      "preresnet-110"},
     {"resnet-18", "torchvision's ResNet-18, 224x224, 1000 classes", "resnet-18"},
     {"resnet-50", "torchvision's ResNet-50, 224x224, 1000 classes", "resnet-50"},
     {"vgg-16", "torchvision's VGG-16, 224x224, 1000 classes, dropout", "vgg-16"},
     {"small-cnn", "three convolutions, 32x32, 10 classes: learns in a minute", "small-cnn"},
     {"gpt-small", "a small GPT for the embedded text: 6 layers of width 128, 256 tokens", "gpt-small"},
     {"gpt-L-D", "GPT of L layers of width D, 256 tokens, with the vocabulary of its data (gpt-6-384)", "gpt-6-384"},
     {"gpt2[-medium|-large|-xl]", "OpenAI's GPT-2, 1,024 tokens, with the names of Hugging Face's parameters", "gpt2"},
     {"llama-small", "the Llama block in the size of SmolLM-135M: 30 layers of width 576, 2,048 tokens", "llama-small"},
     {"llama-L-D", "L Llama blocks of width D, 256 tokens, with the vocabulary of its data (llama-6-384)", "llama-6-384"}}};

}  // namespace

std::optional<std::vector<std::int64_t>> numbers_after(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  std::vector<std::int64_t> numbers;
  while (true) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
    if (error != std::errc() || value < 1 || value > 100'000) return std::nullopt;
    numbers.push_back(value);
    name.remove_prefix(static_cast<std::size_t>(end - name.data()));
    if (name.empty()) return numbers;
    if (!name.starts_with("-")) return std::nullopt;
    name.remove_prefix(1);
  }
}

std::span<const ZooEntry> zoo_entries() { return kEntries; }

std::optional<LanguageModelSize> language_model_size(std::string_view name) {
  const auto model = find_language_model(name);
  if (!model) return std::nullopt;
  return LanguageModelSize{.context = model->context,
                           .vocabulary = model->vocabulary == 0 ? kByteTokens : model->vocabulary,
                           .has_own_vocabulary = model->vocabulary != 0};
}

Program build_zoo_model(std::string_view name, const ZooOptions& options) {
  if (options.classes < 0 || options.classes == 1)
    throw_user_error("{} classes are not possible; use at least 2", options.classes);
  const auto wrn = numbers_after(name, "wrn-");
  if (wrn && wrn->size() == 2) return wide_resnet(std::string(name), (*wrn)[0], (*wrn)[1], options);
  const auto preresnet = numbers_after(name, "preresnet-");
  if (preresnet && preresnet->size() == 1) return preactivation_resnet(std::string(name), (*preresnet)[0], options);
  if (name == "resnet-18") return torchvision_resnet("resnet-18", {2, 2, 2, 2}, ResidualKind::basic, options);
  if (name == "resnet-50") return torchvision_resnet("resnet-50", {3, 4, 6, 3}, ResidualKind::bottleneck, options);
  if (name == "vgg-16") return vgg_16(options);
  if (name == "small-cnn") return small_cnn(options);
  if (const auto model = find_language_model(name)) return language_model(std::string(name), *model, options);
  std::string known;
  std::vector<std::string_view> names;
  for (const ZooEntry& entry : kEntries) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", entry.pattern);
    names.push_back(entry.example);
  }
  throw_user_error("there is no model '{}'; known are {} (D, K and L are numbers, as in wrn-28-2){}", name, known,
                   did_you_mean(name, names));
}

}  // namespace snug::frontend
