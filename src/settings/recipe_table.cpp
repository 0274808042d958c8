#include "settings/recipe_table.h"

#include <algorithm>
#include <array>

// All of it here: the library that Debian builds would be one more to ship for the sake of one file.
#define TOML_HEADER_ONLY 1  // NOLINT(cppcoreguidelines-macro-usage)
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include "base/error.h"
#include "base/nearest.h"
#include "base/printable.h"

namespace snug::settings {

struct RecipeTable::File {
  std::string source;
  toml::table root;
};

namespace {

std::int64_t line_of(const toml::node* node) { return node == nullptr ? 0 : node->source().begin.line; }

std::string at_line(const std::string& source, std::int64_t line) {
  return line > 0 ? fmt::format("{}, line {}", source, line) : source;
}

// The node of "optimizer.momentum", or nullptr.
const toml::node* find_node(const toml::table& root, std::string_view dotted) {
  const toml::table* table = &root;
  for (std::size_t dot = dotted.find('.'); dot != std::string_view::npos; dot = dotted.find('.')) {
    const toml::node* inner = table->get(dotted.substr(0, dot));
    if (inner == nullptr || !inner->is_table()) return nullptr;
    table = inner->as_table();
    dotted.remove_prefix(dot + 1);
  }
  return table->get(dotted);
}

// The same TOML in ASCII. toml++ 3.3 runs into undefined behavior on many a character beyond ASCII where it looks for white
// space, which it does within quotes, too, when it gives up on a value; so it is given none. Outside quotes and comments TOML has
// no such characters, and a recipe needs no texts of several lines: both are refused.
class AsciiToml {
 public:
  AsciiToml(std::string_view text, const std::string& source) : text_(text), source_(source) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        comment();
      } else if (c == '"' || c == '\'') {
        quoted(c);
      } else {
        if (is_beyond_ascii(c)) refuse("there is a character outside quotes that is not ASCII");
        copy();
      }
    }
  }

  std::string take() { return std::move(ascii_); }

 private:
  static bool is_beyond_ascii(char c) { return static_cast<unsigned char>(c) >= 0x80; }
  bool in_line() const { return at_ < text_.size() && text_[at_] != '\n'; }

  void copy() {
    if (text_[at_] == '\n') ++line_;
    ascii_ += text_[at_++];
  }

  void comment() {
    for (; in_line(); ++at_) ascii_ += is_beyond_ascii(text_[at_]) ? '?' : text_[at_];
  }

  void quoted(char quote) {
    if (text_.substr(at_, 3) == std::string(3, quote)) refuse("texts of several lines are not possible here");
    const std::size_t end = text_.find_first_of(std::string{quote, '\n'}, at_ + 1);
    const std::string_view body = text_.substr(at_, end == std::string_view::npos ? end : end - at_);
    const bool escapes = quote == '"';
    // Single quotes know no escapes: such a text becomes one in double quotes.
    const bool changes = !escapes && std::any_of(body.begin(), body.end(), is_beyond_ascii);
    ++at_;
    ascii_ += changes ? '"' : quote;
    while (in_line() && text_[at_] != quote) {
      if (is_beyond_ascii(text_[at_])) {
        ascii_ += fmt::format("\\U{:08X}", character());
      } else if (escapes && text_[at_] == '\\') {
        copy();
        if (in_line() && is_beyond_ascii(text_[at_])) refuse("there is a backslash before a character that takes none");
        if (in_line()) copy();
      } else {
        if (changes && (text_[at_] == '\\' || text_[at_] == '"')) ascii_ += '\\';
        copy();
      }
    }
    if (!in_line()) return;  // no end: for the parser to refuse
    ++at_;
    ascii_ += changes ? '"' : quote;
  }

  // The next character, from UTF-8; TOML has all of Unicode but the halves of pairs.
  std::uint32_t character() {
    const auto first = static_cast<unsigned char>(text_[at_]);
    const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    std::uint32_t value = first & (0xFFU >> (length + 1));
    for (std::size_t i = 1; i < length; ++i) {
      const unsigned char next = at_ + i < text_.size() ? static_cast<unsigned char>(text_[at_ + i]) : 0;
      if ((next & 0xC0U) != 0x80U) refuse("this is not UTF-8");
      value = value << 6U | (next & 0x3FU);
    }
    constexpr std::array<std::uint32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
    if (first < 0xC0 || first >= 0xF8 || value < kLeast[length] || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
      refuse("this is not UTF-8");
    at_ += length;
    return value;
  }

  [[noreturn]] void refuse(std::string_view sentence) const { throw_user_error("{}: {}", at_line(source_, line_), sentence); }

  std::string_view text_;
  const std::string& source_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
  std::string ascii_;
};

toml::table parse(std::string_view text, const std::string& source) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // some editors begin a file in UTF-8 with this mark
  const std::string ascii = AsciiToml(text, source).take();
  try {
    return toml::parse(ascii);
  } catch (const toml::parse_error& error) {
    throw_user_error("{}: this is not TOML: {}", at_line(source, error.source().begin.line), printable(error.description(), 200));
  }
}

}  // namespace

RecipeTable::RecipeTable(std::string_view text, std::string source) {
  toml::table root = parse(text, source);
  file_ = std::make_shared<const File>(File{.source = std::move(source), .root = std::move(root)});
}

RecipeTable RecipeTable::table(const std::string& key) {
  known_.push_back(key);
  const toml::node* node = find_node(file_->root, prefix_ + key);
  if (node != nullptr && !node->is_table()) refuse(prefix_ + key, "must be a table");
  return {file_, prefix_ + key + "."};
}

void RecipeTable::refuse(const std::string& key, const std::string& sentence) const {
  throw_user_error("{}: {} {}", at_line(file_->source, line_of(find_node(file_->root, key))), key, sentence);
}

// The key's value, as toml's type for T: std::string, std::int64_t, double or bool.
template <typename T>
std::optional<T> RecipeTable::find(const std::string& key, const char* kind) {
  known_.push_back(key);
  const toml::node* node = find_node(file_->root, prefix_ + key);
  if (node == nullptr) return std::nullopt;
  if constexpr (std::is_same_v<T, double>) {
    if (const auto* whole = node->as_integer()) return static_cast<double>(whole->get());
  }
  const auto* value = node->as<T>();
  if (value == nullptr) refuse(prefix_ + key, fmt::format("must be {}", kind));
  return value->get();
}

void RecipeTable::required_text(const std::string& key, std::string& value) {
  const auto found = find<std::string>(key, "a text");
  if (!found) throw_user_error("{} has no {}; add a line {} = \"...\"", file_->source, prefix_ + key, key);
  value = *found;
}

void RecipeTable::read(const std::string& key, std::string& value) {
  if (auto found = find<std::string>(key, "a text")) value = std::move(*found);
}

void RecipeTable::read(const std::string& key, std::optional<std::string>& value) {
  if (auto found = find<std::string>(key, "a text")) value = std::move(found);
}

void RecipeTable::read(const std::string& key, std::int64_t& value) {
  if (const auto found = find<std::int64_t>(key, "a whole number")) value = *found;
}

void RecipeTable::read(const std::string& key, std::optional<std::int64_t>& value) {
  if (const auto found = find<std::int64_t>(key, "a whole number")) value = found;
}

void RecipeTable::read(const std::string& key, std::uint64_t& value) {
  const auto found = find<std::int64_t>(key, "a whole number");
  if (!found) return;
  if (*found < 0) refuse(prefix_ + key, "must not be negative");
  value = static_cast<std::uint64_t>(*found);
}

void RecipeTable::read(const std::string& key, double& value) {
  if (const auto found = find<double>(key, "a number")) value = *found;
}

void RecipeTable::read(const std::string& key, std::optional<double>& value) {
  if (const auto found = find<double>(key, "a number")) value = found;
}

void RecipeTable::read(const std::string& key, bool& value) {
  if (const auto found = find<bool>(key, "true or false")) value = *found;
}

void RecipeTable::read(const std::string& key, std::optional<bool>& value) {
  if (const auto found = find<bool>(key, "true or false")) value = *found;
}

void RecipeTable::read(const std::string& key, std::vector<std::string>& values) {
  known_.push_back(key);
  const toml::node* node = find_node(file_->root, prefix_ + key);
  if (node == nullptr) return;
  if (!node->is_array()) refuse(prefix_ + key, "must be a list of texts");
  values.clear();
  for (const toml::node& item : *node->as_array()) {
    if (!item.is_string()) refuse(prefix_ + key, "must be a list of texts");
    values.push_back(item.as_string()->get());
  }
}

void RecipeTable::read(const std::string& key, std::vector<double>& values) {
  known_.push_back(key);
  const toml::node* node = find_node(file_->root, prefix_ + key);
  if (node == nullptr) return;
  if (!node->is_array()) refuse(prefix_ + key, "must be a list of numbers");
  values.clear();
  for (const toml::node& item : *node->as_array()) {
    if (!item.is_number()) refuse(prefix_ + key, "must be a list of numbers");
    values.push_back(item.is_integer() ? static_cast<double>(item.as_integer()->get()) : item.as_floating_point()->get());
  }
}

void RecipeTable::read(const std::string& key, std::optional<DType>& value) {
  const auto found = find<std::string>(key, "a text");
  if (!found) return;
  value = parse_precision(*found);
  constexpr std::array<std::string_view, 3> kNames{"fp32", "fp16", "bf16"};
  if (!value)
    refuse(prefix_ + key, fmt::format("is '{}'; it can be {}{}", *found, fmt::join(kNames, ", "), did_you_mean(*found, kNames)));
}

void RecipeTable::read(const std::string& key, std::optional<CheckpointStrategy>& value) {
  const auto found = find<std::string>(key, "a text");
  if (!found) return;
  try {
    value = parse_checkpoint_strategy(*found);
  } catch (const UserError& error) {
    throw_user_error("{}: {}", at_line(file_->source, line_of(find_node(file_->root, prefix_ + key))), error.what());
  }
}

void RecipeTable::read(const std::string& key, std::optional<Bytes>& value) {
  const toml::node* node = find_node(file_->root, prefix_ + key);
  if (node != nullptr && node->is_integer()) {
    known_.push_back(key);
    if (node->as_integer()->get() < 0) refuse(prefix_ + key, "must not be negative");
    value = Bytes(node->as_integer()->get());
    return;
  }
  const auto found = find<std::string>(key, "a size such as \"24MB\"");
  if (!found) return;
  try {
    value = parse_bytes(*found);
  } catch (const UserError& error) {
    refuse(prefix_ + key, fmt::format("is wrong: {}", printable(error.what(), 200)));
  }
}

void RecipeTable::refuse_unknown_keys() const {
  const toml::node* node = prefix_.empty() ? &file_->root : find_node(file_->root, prefix_.substr(0, prefix_.size() - 1));
  if (node == nullptr) return;
  for (const auto& [key, value] : *node->as_table()) {
    if (std::find(known_.begin(), known_.end(), key.str()) != known_.end()) continue;
    const std::vector<std::string_view> names(known_.begin(), known_.end());
    const auto meant = nearest(key.str(), names);
    throw_user_error("{}: there is no key '{}{}'; {}", at_line(file_->source, line_of(&value)), prefix_, printable(key.str()),
                     meant ? fmt::format("did you mean {}{}?", prefix_, *meant)
                           : fmt::format("the keys {}are {}", prefix_.empty() ? "" : "of this table ", fmt::join(names, ", ")));
  }
}

}  // namespace snug::settings
