#include "ir/attributes.h"

#include <algorithm>

#include "base/error.h"

namespace snug {

namespace {

template <typename T>
const T& get(const Attribute* attribute, std::string_view name, std::string_view kind) {
  if (attribute == nullptr) throw_user_error("attribute '{}' is missing", name);
  const T* value = std::get_if<T>(attribute);
  if (value == nullptr) throw_user_error("attribute '{}' is not {}", name, kind);
  return *value;
}

auto position(auto& entries, std::string_view name) {
  return std::lower_bound(entries.begin(), entries.end(), name,
                          [](const auto& entry, std::string_view n) { return entry.first < n; });
}

}  // namespace

Attributes::Attributes(std::initializer_list<std::pair<std::string, Attribute>> entries) {
  for (const auto& [name, value] : entries) set(name, value);
}

void Attributes::set(std::string_view name, Attribute value) {
  const auto at = position(entries_, name);
  if (at != entries_.end() && at->first == name) {
    at->second = std::move(value);
  } else {
    entries_.emplace(at, std::string(name), std::move(value));
  }
}

void Attributes::erase(std::string_view name) {
  const auto at = position(entries_, name);
  if (at != entries_.end() && at->first == name) entries_.erase(at);
}

const Attribute* Attributes::find(std::string_view name) const {
  const auto at = position(entries_, name);
  return at != entries_.end() && at->first == name ? &at->second : nullptr;
}

std::int64_t Attributes::integer(std::string_view name) const { return get<std::int64_t>(find(name), name, "a whole number"); }

double Attributes::real(std::string_view name) const { return get<double>(find(name), name, "a real number"); }

const std::vector<std::int64_t>& Attributes::integers(std::string_view name) const {
  return get<std::vector<std::int64_t>>(find(name), name, "a list of whole numbers");
}

const std::vector<double>& Attributes::reals(std::string_view name) const {
  return get<std::vector<double>>(find(name), name, "a list of real numbers");
}

std::int64_t Attributes::integer_or(std::string_view name, std::int64_t fallback) const {
  return has(name) ? integer(name) : fallback;
}

}  // namespace snug
