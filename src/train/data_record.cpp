#include "train/data_record.h"

#include <algorithm>
#include <span>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "base/error.h"
#include "base/printable.h"

namespace snug::train {

namespace {

// File names are bytes, and a class is named by its folder: what JSON cannot hold is kept as an array of bytes.
nlohmann::ordered_json text_json(const std::string& text) {
  try {
    nlohmann::json(text).dump();
    return text;
  } catch (const nlohmann::json::exception&) {
    nlohmann::ordered_json bytes = nlohmann::ordered_json::array();
    for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
    return bytes;
  }
}

std::string text_of(const nlohmann::json& json) {
  if (json.is_string()) return json.get<std::string>();
  std::string text;
  for (const auto& byte : json) text += static_cast<char>(byte.get<unsigned char>());
  return text;
}

// "a, b, c and 7 more"
std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 5;
  std::vector<std::string> shown;
  for (const std::string& name : std::span(names).first(std::min(names.size(), kShown))) shown.push_back(printable(name, 40));
  std::string text = fmt::format("{}", fmt::join(shown, ", "));
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

bool are_numbered(const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] != std::to_string(i)) return false;
  }
  return true;
}

}  // namespace

std::string print_data_record(const data::Description& data) {
  nlohmann::ordered_json names = nlohmann::ordered_json::array();
  for (const std::string& name : data.class_names) names.push_back(text_json(name));
  return nlohmann::ordered_json{{"name", text_json(data.name)},
                                {"channels", data.channels},
                                {"height", data.height},
                                {"width", data.width},
                                {"class_names", std::move(names)},
                                {"train_examples", data.train_examples},
                                {"test_examples", data.test_examples},
                                {"mean", data.mean},
                                {"std", data.std},
                                {"fingerprint", fmt::format("{:016x}", data.fingerprint)}}
      .dump();
}

data::Description parse_data_record(const std::string& text, const std::string& source) {
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    data::Description data{.name = text_of(json.at("name")),
                           .channels = json.at("channels").get<std::int64_t>(),
                           .height = json.at("height").get<std::int64_t>(),
                           .width = json.at("width").get<std::int64_t>(),
                           .train_examples = json.at("train_examples").get<std::int64_t>(),
                           .test_examples = json.at("test_examples").get<std::int64_t>(),
                           .mean = json.at("mean").get<std::vector<double>>(),
                           .std = json.at("std").get<std::vector<double>>(),
                           .fingerprint = std::stoull(json.at("fingerprint").get<std::string>(), nullptr, 16)};
    for (const auto& name : json.at("class_names")) data.class_names.push_back(text_of(name));
    data.classes = static_cast<std::int64_t>(data.class_names.size());
    const auto channels = static_cast<std::size_t>(std::max<std::int64_t>(data.channels, 0));
    if (data.classes < 1 || data.channels < 1 || data.height < 1 || data.width < 1 || data.train_examples < 1 ||
        data.test_examples < 1 || data.mean.size() != channels || data.std.size() != channels)
      throw std::out_of_range("sizes");
    return data;
  } catch (const std::exception&) {  // of the JSON library, of stoull, and the one above
    throw_user_error("{} does not say what data the run was trained on; it is damaged", source);
  }
}

std::string describe_class_difference(const data::Description& trained_on, const data::Description& now) {
  if (now.classes != trained_on.classes) {
    return fmt::format("it has {} ({}) where the run has {} ({})", counted(now.classes, "class", "classes"),
                       listed(now.class_names), trained_on.classes, listed(trained_on.class_names));
  }
  if (now.class_names == trained_on.class_names || are_numbered(now.class_names) || are_numbered(trained_on.class_names))
    return "";
  const auto [other, own] = std::ranges::mismatch(now.class_names, trained_on.class_names);
  return fmt::format("its class {} is '{}' where the run has '{}' (its classes are {}; the run's are {})",
                     other - now.class_names.begin(), printable(*other, 40), printable(*own, 40), listed(now.class_names),
                     listed(trained_on.class_names));
}

std::string describe_difference(const data::Description& trained_on, const data::Description& now) {
  if (std::string classes = describe_class_difference(trained_on, now); !classes.empty()) return classes;
  if (now.channels != trained_on.channels || now.height != trained_on.height || now.width != trained_on.width) {
    return fmt::format("its images are {}x{} with {} channels where the run has {}x{} with {}", now.height, now.width,
                       now.channels, trained_on.height, trained_on.width, trained_on.channels);
  }
  if (now.train_examples != trained_on.train_examples || now.test_examples != trained_on.test_examples) {
    return fmt::format("it has {} for training and {} for testing where the run has {} and {}",
                       counted(now.train_examples, "image"), now.test_examples, trained_on.train_examples,
                       trained_on.test_examples);
  }
  if (now.fingerprint != trained_on.fingerprint) return "its files have other names than those that the run was trained on";
  if (now.mean != trained_on.mean || now.std != trained_on.std) {
    return fmt::format("its images have changed: their mean is {:.6g} where the run has {:.6g}", fmt::join(now.mean, ", "),
                       fmt::join(trained_on.mean, ", "));
  }
  return "";
}

data::Description same_data(const data::Description& trained_on, const data::Description& now,
                            const std::optional<std::uint64_t>& unreadable) {
  const std::string difference = describe_difference(trained_on, now);
  if (difference.empty()) return trained_on;
  const bool one_is_gone = unreadable && trained_on.fingerprint - now.fingerprint == *unreadable &&
                           now.train_examples + now.test_examples + 1 == trained_on.train_examples + trained_on.test_examples &&
                           now.class_names == trained_on.class_names && now.height == trained_on.height;
  if (!one_is_gone) {
    throw_user_error(
        "the data of this run has changed: {}; bring the old data back (--data says where it is, if it moved), or export the "
        "weights and start another run from them with --init",
        difference);
  }
  data::Description record = trained_on;
  record.train_examples = now.train_examples;
  record.test_examples = now.test_examples;
  record.fingerprint = now.fingerprint;
  return record;
}

}  // namespace snug::train
