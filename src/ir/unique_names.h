// Unique names: "x", then "x.2", "x.3", ... Each takes constant time, however often the same name is asked for.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

namespace snug {

class UniqueNames {
 public:
  // Marks the name as used.
  void take(std::string_view name) { count_.try_emplace(std::string(name), 1); }

  std::string make(const std::string& wanted);

 private:
  std::unordered_map<std::string, int> count_;  // by taken name: how often it was asked for
};

}  // namespace snug
