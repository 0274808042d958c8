#include "train/random_batches.h"

#include <algorithm>

#include "base/error.h"
#include "base/philox.h"
#include "ir/op.h"

namespace snug::train {

namespace {

// As many as the loss tells apart.
std::int64_t classes_of(const Program& program) {
  const Section* micro = program.find_section(SectionKind::micro);
  SNUG_CHECK(micro != nullptr, "the program of '{}' has no section micro", program.name);
  const auto loss = std::ranges::find_if(micro->nodes, [](const Node& node) { return node.op->loss != nullptr; });
  SNUG_CHECK(loss != micro->nodes.end(), "the program of '{}' has no loss", program.name);
  return micro->value(loss->inputs.front()).type.shape[1];
}

}  // namespace

RandomBatches::RandomBatches(const Program& program, std::int64_t examples, std::uint64_t seed, std::size_t batches) {
  const StateId input = program.find_state("images");
  if (!input.valid()) throw_user_error("'{}' does not take images, so there are no random ones for it", program.name);
  const std::int64_t example_bytes = program.state(input).type.bytes().count() / program.microbatch;
  const auto classes = static_cast<std::uint32_t>(classes_of(program));
  for (std::uint64_t b = 0; b < batches; ++b) {
    std::vector<std::byte>& images = images_.emplace_back(static_cast<std::size_t>(examples * example_bytes));
    for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<std::byte>(philox(seed, i, b).word[0] >> 24U);
    std::vector<std::int32_t>& labels = labels_.emplace_back(static_cast<std::size_t>(examples));
    for (std::size_t i = 0; i < labels.size(); ++i)
      labels[i] = static_cast<std::int32_t>(uniform_below(philox(seed, i, b).word[1], classes));
  }
}

}  // namespace snug::train
