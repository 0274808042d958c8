#include "api/trained_data.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/printable.h"
#include "frontend/zoo.h"
#include "io/plan_file.h"
#include "ir/loss.h"

namespace snug {

data::Description description_of(const settings::Recipe& recipe, const Plan& plan) {
  data::Description data{.name = recipe.data};
  const Section* micro = plan.program.find_section(SectionKind::micro);
  SNUG_CHECK(micro != nullptr, "a plan without a step was trained");
  for (const Node& node : micro->nodes) {
    if (node.op->prepares_data) {
      const Shape& images = micro->value(node.inputs.front()).type.shape;
      data.channels = images[1];
      data.height = images[2];
      data.width = images[3];
      data.mean = node.attributes.reals("mean");
      data.std = node.attributes.reals("std");
    }
  }
  const ProgramLoss loss = loss_of(plan.program);
  if (frontend::language_model_size(recipe.model)) {
    data.kind = data::Kind::text;
    data.text = {.tokenizer = recipe.tokenizer.value_or("bytes"), .vocabulary = loss.classes, .length = loss.rows_per_example};
    return data;
  }
  data.classes = loss.classes;
  // What the labels are called is not known.
  for (std::int64_t label = 0; label < data.classes; ++label) data.class_names.push_back(std::to_string(label));
  return data;
}

data::Description trained_on(const train::SnapshotInfo& snapshot, const settings::Recipe& recipe) {
  if (snapshot.progress.data) return *snapshot.progress.data;
  return description_of(recipe, io::parse_plan(snapshot.plan));
}

settings::Recipe with_whole_paths(settings::Recipe recipe) {
  const auto whole = [](const std::string& path) {
    std::error_code error;
    const std::string absolute = std::filesystem::absolute(path, error).lexically_normal().string();
    // A working folder may have a name that a recipe, which is UTF-8, cannot hold: then the path holds from there alone.
    const bool can_be_kept = !error && printable(absolute, absolute.size()) == absolute;
    return can_be_kept ? absolute : path;
  };
  if (std::ranges::find(data::kNamedSets, recipe.data) == data::kNamedSets.end()) recipe.data = whole(recipe.data);
  if (recipe.tokenizer && *recipe.tokenizer != "bytes") recipe.tokenizer = whole(*recipe.tokenizer);
  if (recipe.init) recipe.init = whole(*recipe.init);
  return recipe;
}

}  // namespace snug
