#include <algorithm>

#include "api/access.h"
#include "base/error.h"
#include "settings/knobs.h"

namespace snug {

Recipe::Recipe(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Recipe::Recipe(const std::string& model) : impl_(std::make_unique<Impl>(Impl{.base = {.model = model}, .told = {}})) {}
Recipe::Recipe(const Recipe& other) : impl_(std::make_unique<Impl>(*other.impl_)) {}
Recipe& Recipe::operator=(const Recipe& other) {
  impl_ = std::make_unique<Impl>(*other.impl_);
  return *this;
}
Recipe::Recipe(Recipe&&) noexcept = default;
Recipe& Recipe::operator=(Recipe&&) noexcept = default;
Recipe::~Recipe() = default;

Recipe Recipe::read(const std::string& path) {
  return Recipe(std::make_unique<Impl>(Impl{.base = settings::read_recipe(path), .told = {}}));
}

Recipe Recipe::parse(const std::string& toml) {
  return Recipe(std::make_unique<Impl>(Impl{.base = settings::parse_recipe(toml), .told = {}}));
}

Recipe& Recipe::set(const std::string& key, const std::string& value) { return set_each(key, {value}); }

Recipe& Recipe::set_each(const std::string& key, const std::vector<std::string>& values) {
  if (key == "model" || !settings::has_knob(key)) throw_user_error("a recipe has no key '{}' to set", key);
  if (values.empty()) throw_user_error("'{}' is set to nothing; give a value", key);
  if (values.size() > 1 && !settings::knob(key).repeats) throw_user_error("'{}' takes one value, not {}", key, values.size());
  settings::Recipe tried;  // a bad value is refused here, where it is set
  take(settings::knob(key), values, tried, settings::SaidBy::recipe);
  // How long, and which budget, is said in one of two ways: the later holds.
  for (const auto& [one, other] :
       {std::pair{"epochs", "steps"}, {"steps", "epochs"}, {"budget", "process_budget"}, {"process_budget", "budget"}}) {
    if (key == one) impl_->told.erase(other);
  }
  impl_->told[key] = values;
  return *this;
}

std::string Recipe::toml() const { return settings::print_recipe(impl_->whole()); }

}  // namespace snug
