// How a value's leading dimension is made of examples. After a reshape to [N*T, D] an example has T rows; a table of positions is
// the same for all examples. Ops that draw random numbers or leave out padding must know, so that a step gives the same result
// however it is split into microbatches.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/program.h"

namespace snug {

// The attribute that says so: rows of the leading dimension that one example has. Absent: 1. 0: the value does not depend on the
// examples, and every microbatch draws the same for it.
inline constexpr std::string_view kRowsPerExample = "rows_per_example";

std::int64_t rows_per_example(const Attributes& attributes);
// Sets the attribute, or leaves it out where it has the default value.
void set_rows_per_example(Attributes& attributes, std::int64_t rows);

// Elements by which random draws advance per example, for a node with these attributes and `type` as its first input. 0 where the
// draws do not depend on the example.
std::int64_t elements_per_example(const Type& type, const Attributes& attributes);

// Rows per example of a value of this type that has `examples` examples; nothing when its leading dimension is not made of that
// many.
std::optional<std::int64_t> rows_of_examples(const Type& type, std::int64_t examples);

// Follows the data flow of a section from the program's inputs on. A value depends on the examples when it comes from a state of
// Role::input.
class ExampleRows {
 public:
  // Both must outlive it; nodes and values may be appended to the section.
  ExampleRows(const std::vector<State>& states, const Section& section, std::int64_t microbatch)
      : states_(states), section_(section), microbatch_(microbatch) {}

  bool depends_on_examples(ValueId id);
  // The attribute's value for a value; nothing when it depends on the examples and its leading
  // dimension is not made of them.
  std::optional<std::int64_t> of(ValueId id);

 private:
  bool depends(ValueId id) const;
  void catch_up();

  const std::vector<State>& states_;
  const Section& section_;
  std::int64_t microbatch_;
  std::size_t followed_ = 0;   // nodes
  std::vector<bool> depends_;  // by value, for those that nodes make
};

}  // namespace snug
