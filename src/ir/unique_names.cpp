#include "ir/unique_names.h"

#include <fmt/format.h>

namespace snug {

std::string UniqueNames::make(const std::string& wanted) {
  // Unique even when something is itself called "x.2".
  for (std::string name = wanted;;) {
    if (count_.try_emplace(name, 1).second) return name;
    name = fmt::format("{}.{}", wanted, ++count_[wanted]);
  }
}

}  // namespace snug
