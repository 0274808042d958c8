#include "ir/example_rows.h"

#include <algorithm>

namespace snug {

std::int64_t rows_per_example(const Attributes& attributes) { return attributes.integer_or(kRowsPerExample, 1); }

void set_rows_per_example(Attributes& attributes, std::int64_t rows) {
  if (rows == 1)
    attributes.erase(kRowsPerExample);
  else
    attributes.set(kRowsPerExample, rows);
}

std::int64_t elements_per_example(const Type& type, const Attributes& attributes) {
  return type.elements() / type.shape[0] * rows_per_example(attributes);
}

std::optional<std::int64_t> rows_of_examples(const Type& type, std::int64_t examples) {
  if (type.shape.rank() == 0 || type.shape[0] % examples != 0) return std::nullopt;
  return type.shape[0] / examples;
}

bool ExampleRows::depends(ValueId id) const {
  const Value& value = section_.value(id);
  if (value.is_state() && value.version == 0) return states_[value.state.index()].role == Role::input;
  return depends_[id.index()];
}

void ExampleRows::catch_up() {
  depends_.resize(section_.values.size());
  for (; followed_ < section_.nodes.size(); ++followed_) {
    const Node& node = section_.nodes[followed_];
    const bool any = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) { return depends(id); });
    for (const ValueId output : node.outputs) depends_[output.index()] = any;
  }
}

bool ExampleRows::depends_on_examples(ValueId id) {
  catch_up();
  return depends(id);
}

std::optional<std::int64_t> ExampleRows::of(ValueId id) {
  if (!depends_on_examples(id)) return 0;
  return rows_of_examples(section_.value(id).type, microbatch_);
}

}  // namespace snug
