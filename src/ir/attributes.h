// The constants of a node (stride, epsilon, ...): a small sorted list of named values, printed in the text form.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace snug {

using Attribute = std::variant<std::int64_t, double, std::vector<std::int64_t>, std::vector<double>>;

class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string, Attribute>> entries);

  void set(std::string_view name, Attribute value);
  void erase(std::string_view name);
  bool has(std::string_view name) const { return find(name) != nullptr; }

  // The named constant; UserError when it is absent or of another kind, since a program may come from a text file.
  std::int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  const std::vector<std::int64_t>& integers(std::string_view name) const;
  const std::vector<double>& reals(std::string_view name) const;
  // The same, with a value to return when it is absent.
  std::int64_t integer_or(std::string_view name, std::int64_t fallback) const;

  const std::vector<std::pair<std::string, Attribute>>& entries() const { return entries_; }

  friend bool operator==(const Attributes&, const Attributes&) = default;

 private:
  const Attribute* find(std::string_view name) const;

  std::vector<std::pair<std::string, Attribute>> entries_;  // sorted by name, so that printing is canonical
};

}  // namespace snug
