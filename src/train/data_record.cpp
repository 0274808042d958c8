#include "train/data_record.h"

#include <algorithm>
#include <limits>
#include <span>
#include <stdexcept>

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

std::string print_hex(std::uint64_t value) { return fmt::format("{:016x}", value); }
std::uint64_t parse_hex(const nlohmann::json& json) { return std::stoull(json.get<std::string>(), nullptr, 16); }

nlohmann::ordered_json print_text_record(const data::Description& data) {
  const data::TextFacts& text = data.text;
  return {{"name", text_json(data.name)},
          {"kind", "text"},
          {"tokenizer", text_json(text.tokenizer)},
          {"vocabulary", text.vocabulary},
          {"tokenizer_fingerprint", print_hex(text.tokenizer_fingerprint)},
          {"length", text.length},
          {"train_tokens", text.train_tokens},
          {"test_tokens", text.test_tokens},
          {"train_bytes", text.train_bytes},
          {"test_bytes", text.test_bytes},
          {"sample", print_hex(text.sample)},
          {"train_examples", data.train_examples},
          {"test_examples", data.test_examples},
          {"fingerprint", print_hex(data.fingerprint)}};
}

data::Description parse_text_record(const nlohmann::json& json) {
  const auto count = [&](const char* key) { return json.at(key).get<std::int64_t>(); };
  data::Description data{.name = text_of(json.at("name")),
                         .kind = data::Kind::text,
                         .train_examples = count("train_examples"),
                         .test_examples = count("test_examples"),
                         .fingerprint = parse_hex(json.at("fingerprint")),
                         .text = {.tokenizer = text_of(json.at("tokenizer")),
                                  .vocabulary = count("vocabulary"),
                                  .tokenizer_fingerprint = parse_hex(json.at("tokenizer_fingerprint")),
                                  .length = count("length"),
                                  .train_tokens = count("train_tokens"),
                                  .test_tokens = count("test_tokens"),
                                  .train_bytes = count("train_bytes"),
                                  .test_bytes = count("test_bytes"),
                                  .sample = parse_hex(json.at("sample"))}};
  const data::TextFacts& text = data.text;
  for (const std::int64_t least_1 : {text.vocabulary, text.length, text.train_tokens, text.test_tokens, text.train_bytes,
                                     text.test_bytes, data.train_examples, data.test_examples}) {
    if (least_1 < 1) throw std::out_of_range("sizes");
  }
  if (text.length > data::kMostLength || text.vocabulary > std::numeric_limits<std::int32_t>::max())
    throw std::out_of_range("sizes");
  return data;
}

// How texts differ, as describe_difference() says it.
std::string describe_text_difference(const data::Description& trained_on, const data::Description& now) {
  const data::TextFacts& was = trained_on.text;
  const data::TextFacts& is = now.text;
  if (is.length != was.length) {
    return fmt::format("its examples have {} where the run has {}", counted(is.length, "token"), was.length);
  }
  if (is.train_bytes != was.train_bytes || is.test_bytes != was.test_bytes) {
    return fmt::format("it has {} for training and {} for testing where the run has {} and {}", counted(is.train_bytes, "byte"),
                       is.test_bytes, was.train_bytes, was.test_bytes);
  }
  if (now.fingerprint != trained_on.fingerprint)
    return "its files have other names or sizes than those that the run was trained on";
  if (is.sample != was.sample || is.train_tokens != was.train_tokens || is.test_tokens != was.test_tokens ||
      now.train_examples != trained_on.train_examples || now.test_examples != trained_on.test_examples)
    return "its text has changed";
  return "";
}

}  // namespace

std::string print_data_record(const data::Description& data) {
  if (data.kind == data::Kind::text) return print_text_record(data).dump();
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
                                {"fingerprint", print_hex(data.fingerprint)}}
      .dump();
}

data::Description parse_data_record(const std::string& text, const std::string& source) {
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    if (json.contains("kind")) {
      if (json.at("kind") != "text") throw std::out_of_range("kind");
      return parse_text_record(json);
    }
    data::Description data{.name = text_of(json.at("name")),
                           .channels = json.at("channels").get<std::int64_t>(),
                           .height = json.at("height").get<std::int64_t>(),
                           .width = json.at("width").get<std::int64_t>(),
                           .train_examples = json.at("train_examples").get<std::int64_t>(),
                           .test_examples = json.at("test_examples").get<std::int64_t>(),
                           .mean = json.at("mean").get<std::vector<double>>(),
                           .std = json.at("std").get<std::vector<double>>(),
                           .fingerprint = parse_hex(json.at("fingerprint"))};
    for (const auto& name : json.at("class_names")) data.class_names.push_back(text_of(name));
    data.classes = static_cast<std::int64_t>(data.class_names.size());
    const auto channels = static_cast<std::size_t>(std::max<std::int64_t>(data.channels, 0));
    if (data.classes < 1 || data.channels < 1 || data.height < 1 || data.width < 1 || data.train_examples < 1 ||
        data.test_examples < 1 || data.mean.size() != channels || data.std.size() != channels)
      throw std::out_of_range("sizes");
    return data;
  } catch (const std::exception&) {  // of the JSON library, of stoull, and those for sizes and kinds
    throw_user_error("{} does not say what data the run was trained on; it is damaged", source);
  }
}

void check_tokenizer(const data::Description& trained_on, const data::TextFacts& now) {
  const std::uint64_t expected = trained_on.text.tokenizer_fingerprint;
  if (expected == 0 || now.tokenizer_fingerprint == expected) return;
  throw_user_error("the tokenizer {} is not the one that the run was trained with; give that one with --tokenizer",
                   in_quotes(now.tokenizer, 200));
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
  if (now.kind != trained_on.kind) {
    return now.kind == data::Kind::text ? "it is a text where the run was trained on images"
                                        : "it has images where the run was trained on a text";
  }
  if (now.kind == data::Kind::text) return describe_text_difference(trained_on, now);
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
  if (now.kind == data::Kind::text) check_tokenizer(trained_on, now.text);
  const std::string difference = describe_difference(trained_on, now);
  if (difference.empty()) return trained_on;
  const bool one_is_gone = unreadable && trained_on.kind == data::Kind::images && now.kind == data::Kind::images &&
                           trained_on.fingerprint - now.fingerprint == *unreadable &&
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
