#include "ir/node_key.h"

#include <type_traits>

#include "ir/op.h"

namespace snug {

namespace {

template <typename T>
void append_raw(std::string& key, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  key.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// With their lengths, so that different lists have different keys.
template <typename T>
void append_list(std::string& key, std::span<const T> list) {
  append_raw(key, list.size());
  for (const T& item : list) append_raw(key, item);
}

void append_type(std::string& key, const Type& type) {
  append_raw(key, type.dtype);
  append_list(key, type.shape.dims());
  append_raw(key, type.layout.kind);
  append_list(key, std::span<const char>(type.layout.opaque_name));
  append_raw(key, type.layout.opaque_bytes.count());
}

void append_attribute(std::string& key, const Attribute& attribute) {
  append_raw(key, attribute.index());
  std::visit(
      [&](const auto& value) {
        if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>)
          append_raw(key, value);
        else
          append_list(key, std::span(value));
      },
      attribute);
}

}  // namespace

std::string node_key(const OpDef& op, const Attributes& attributes, std::span<const Type> inputs, std::span<const Type> outputs) {
  std::string key;
  append_list(key, std::span<const char>(op.name));
  for (const auto& [name, value] : attributes.entries()) {
    append_list(key, std::span<const char>(name));
    append_attribute(key, value);
  }
  for (const auto& types : {inputs, outputs}) {
    append_raw(key, types.size());
    for (const Type& type : types) append_type(key, type);
  }
  return key;
}

}  // namespace snug
