#include "ops/updates/coded_states.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"

namespace snug::ops {

Type codes_type(const Type& weight) {
  const std::int64_t stored = weight.bytes().count() * 8 / bits_per_element(weight.dtype);
  if (stored < 1) throw_user_error("{} has nothing to move", to_string(weight));
  return {.dtype = DType::u8, .shape = {stored}};
}

std::string order_suffix(const Layout& layout) {
  if (layout.kind == Layout::Kind::row_major) return {};
  std::string order = layout.kind == Layout::Kind::channels_last ? "channels_last" : layout.opaque_name;
  std::replace_if(
      order.begin(), order.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return "." + order;
}

}  // namespace snug::ops
