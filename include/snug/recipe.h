// Everything that training can be told, by the keys of recipe.toml. `snug train --help` describes each as a flag; docs/train.md
// has an example of a file.
//
//   snug::Recipe recipe("wrn-28-2");
//   recipe.set("data", "cifar10").set("budget", "24MB").set("optimizer.learning_rate", "0.05").set("epochs", "30");
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace snug {

class Recipe {
 public:
  // For a model of the zoo, or of your own (see Trainer), whose name it then is.
  explicit Recipe(const std::string& model);
  // A recipe's file, or its text. UserError, naming the line, when it is not one.
  static Recipe read(const std::string& path);
  static Recipe parse(const std::string& toml);

  // The value as the key's flag takes it: "24MB", "0.1", "yes", "60,120". UserError when there is no such key, or no such value.
  Recipe& set(const std::string& key, const std::string& value);
  // Of a key whose flag may be repeated: "freeze", {"layer1", "layer2"}.
  Recipe& set_each(const std::string& key, const std::vector<std::string>& values);

  // As a recipe's file has it. UserError when its values do not go together.
  std::string toml() const;

  Recipe(const Recipe& other);
  Recipe& operator=(const Recipe& other);
  Recipe(Recipe&&) noexcept;
  Recipe& operator=(Recipe&&) noexcept;
  ~Recipe();

 private:
  friend struct Access;
  struct Impl;
  explicit Recipe(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace snug
