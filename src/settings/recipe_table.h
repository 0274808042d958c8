// One table of a TOML file, read key by key: each call names a key that may be there and puts its value where it belongs. What no
// call has named is unknown.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "passes/methods.h"

namespace snug::settings {

class RecipeTable {
 public:
  // The file's own table. UserError naming `source` and the line when the text is not TOML.
  RecipeTable(std::string_view text, std::string source);

  // A table within; empty when it is not there.
  RecipeTable table(const std::string& key);

  // Each leaves the value as it is when the key is not there, and throws UserError, naming the line, on another type.
  void required_text(const std::string& key, std::string& value);
  void read(const std::string& key, std::string& value);
  void read(const std::string& key, std::optional<std::string>& value);
  void read(const std::string& key, std::vector<std::string>& values);
  void read(const std::string& key, std::int64_t& value);
  void read(const std::string& key, std::optional<std::int64_t>& value);
  void read(const std::string& key, std::uint64_t& value);  // not negative
  void read(const std::string& key, double& value);         // a whole one, too
  void read(const std::string& key, std::optional<double>& value);
  void read(const std::string& key, std::vector<double>& values);
  void read(const std::string& key, bool& value);
  void read(const std::string& key, std::optional<bool>& value);
  void read(const std::string& key, std::optional<Bytes>& value);               // "24MB", or a whole number
  void read(const std::string& key, std::optional<DType>& value);               // "bf16"
  void read(const std::string& key, std::optional<CheckpointStrategy>& value);  // "residual-2*"

  // UserError about the first key that no call has named, with the nearest that one has, or with all of them.
  void refuse_unknown_keys() const;
  // UserError: source, line of the key ("optimizer.momentum") where it stands, the key, the sentence.
  [[noreturn]] void refuse(const std::string& key, const std::string& sentence) const;

 private:
  struct File;
  RecipeTable(std::shared_ptr<const File> file, std::string prefix) : file_(std::move(file)), prefix_(std::move(prefix)) {}
  template <typename T>
  std::optional<T> find(const std::string& key, const char* kind);

  std::shared_ptr<const File> file_;
  std::string prefix_;  // "optimizer." within that table
  std::vector<std::string> known_;
};

}  // namespace snug::settings
