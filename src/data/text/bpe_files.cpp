#include "data/text/bpe_files.h"

#include <algorithm>
#include <array>
#include <span>
#include <system_error>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/printable.h"
#include "data/file.h"
#include "data/text/bpe_alphabet.h"
#include "data/text/words.h"

namespace snug::data {

namespace {

using nlohmann::json;

constexpr std::int64_t kMostFileBytes = std::int64_t{256} << 20U;
// More than any tokenizer has; a larger number is a mistake in the file.
constexpr std::int64_t kMostTokens = std::int64_t{1} << 24U;
constexpr std::array<std::string_view, 4> kEndsOfText{"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>"};

json parse_json(std::string_view text, const std::string& source) {
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    throw_user_error("{} is not JSON: it is wrong at byte {}", source, error.byte);
  } catch (const json::exception&) {
    throw_user_error("{} is not JSON", source);
  }
}

// The vocabulary as it is written, while it is read.
class Vocabulary {
 public:
  Vocabulary(const json& object, std::string source) : source_(std::move(source)) {
    if (!object.is_object()) throw_user_error("{} has no vocabulary: an object with a number for each token", source_);
    for (const auto& [text, id] : object.items()) add(text, id, /*is_added=*/false);
  }

  // The number of a token that merges can make or take.
  std::optional<Token> find(const std::string& text) const {
    const auto found = tokens_.find(text);
    return found == tokens_.end() ? std::nullopt : std::optional(found->second);
  }

  // A token that stands for its own text; it may be in the vocabulary already.
  Token add_literal(const std::string& text, const json& id) { return add(text, id, /*is_added=*/true); }

  // Fills tokens and bytes.
  void finish(BpeDefinition& definition) const {
    const auto size = static_cast<std::int64_t>(by_id_.size());
    definition.tokens.resize(by_id_.size());
    for (const auto& [id, entry] : by_id_) {
      if (id >= size) throw_user_error("{} has {} tokens, but none with the number {}", source_, size, first_missing());
      definition.tokens[static_cast<std::size_t>(id)] = bytes_of(entry);
    }
    for (unsigned byte = 0; byte < 256; ++byte) {
      const std::optional<Token> token = find(spell_bytes(std::string(1, static_cast<char>(byte))));
      if (!token)
        throw_user_error("{} has no token for the byte {:#04x}; a byte-level vocabulary has one for each of 256", source_, byte);
      definition.bytes[byte] = *token;
    }
  }

 private:
  struct Entry {
    std::string text;
    bool is_added = false;
  };

  Token add(const std::string& text, const json& id, bool is_added) {
    if (!id.is_number_integer() || id.get<std::int64_t>() < 0 || id.get<std::int64_t>() >= kMostTokens) {
      throw_user_error("{} gives the token {} the number {}; tokens are numbered from 0", source_, in_quotes(text, 40),
                       printable(id.dump(-1, ' ', false, json::error_handler_t::replace), 40));
    }
    const auto token = id.get<Token>();
    const auto [place, is_new] = by_id_.try_emplace(token, Entry{.text = text, .is_added = is_added});
    if (!is_new && place->second.text != text) {
      throw_user_error("{} gives two tokens the number {}: {} and {}", source_, token,
                       in_quotes(std::min(place->second.text, text), 40), in_quotes(std::max(place->second.text, text), 40));
    }
    place->second.is_added = is_added;
    if (!is_added) tokens_.emplace(text, token);
    const std::optional<Token> other = is_added ? find(text) : std::nullopt;
    const auto [known, is_first] = is_added ? added_.emplace(text, token) : std::pair(added_.end(), true);
    if ((other && *other != token) || (!is_first && known->second != token)) {
      throw_user_error("{} gives the token {} two numbers: {} and {}", source_, in_quotes(text, 40),
                       other ? *other : known->second, token);
    }
    return token;
  }

  std::string bytes_of(const Entry& entry) const {
    std::optional<std::string> bytes = entry.is_added ? entry.text : bytes_spelled(entry.text);
    if (!bytes) {
      throw_user_error("{} has the token {}, which is not written in the characters of byte-level BPE", source_,
                       in_quotes(entry.text, 40));
    }
    if (bytes->size() > kLongestToken)
      throw_user_error("{} has a token of {} bytes; more than {} are not taken", source_, bytes->size(), kLongestToken);
    return *std::move(bytes);
  }

  Token first_missing() const {
    Token missing = 0;
    while (by_id_.contains(missing)) ++missing;
    return missing;
  }

  std::string source_;
  std::unordered_map<std::string, Token> tokens_;
  std::unordered_map<std::string, Token> added_;
  std::unordered_map<Token, Entry> by_id_;
};

// Merges as they are read, each with the place that it has in its file.
class MergeList {
 public:
  explicit MergeList(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  void add(const std::string& left, const std::string& right, const std::string& place) {
    const auto token = [&](const std::string& text) {
      const std::optional<Token> found = vocabulary_.find(text);
      if (!found) {
        throw_user_error("{} merges {} and {}, but the vocabulary has no {}", place, in_quotes(left, 40), in_quotes(right, 40),
                         in_quotes(text, 80));
      }
      return *found;
    };
    if (left.empty() || right.empty()) throw_user_error("{} is not two tokens to merge", place);
    const Merge merge{.left = token(left), .right = token(right), .merged = token(left + right)};
    if (!pairs_.insert((static_cast<std::uint64_t>(merge.left) << 32U) | static_cast<std::uint32_t>(merge.right)).second)
      throw_user_error("{} merges {} and {} a second time", place, in_quotes(left, 40), in_quotes(right, 40));
    merges_.push_back(merge);
  }
  // "left right"
  void add(std::string_view line, const std::string& place) {
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos)
      throw_user_error("{} is not two tokens with a space between them", place);
    add(std::string(line.substr(0, space)), std::string(line.substr(space + 1)), place);
  }

  std::vector<Merge> take() { return std::move(merges_); }

 private:
  const Vocabulary& vocabulary_;
  std::vector<Merge> merges_;
  std::unordered_set<std::uint64_t> pairs_;
};

// A member that changes what a tokenizer does and is not known here, unless it has the value that changes nothing.
void refuse_unless(const json& object, const char* key, std::initializer_list<json> harmless, const std::string& source) {
  const auto member = object.find(key);
  if (member == object.end() || std::ranges::find(harmless, *member) != harmless.end()) return;
  throw_user_error("{} has {} {}, which is not known here", source, key,
                   printable(member->dump(-1, ' ', false, json::error_handler_t::replace), 60));
}

std::string type_of(const json& object) {
  return object.is_object() && object.contains("type") && object["type"].is_string() ? object["type"].get<std::string>() : "";
}

void check_byte_level(const json& step, bool splits, const std::string& source) {
  if (type_of(step) != "ByteLevel") {
    throw_user_error("{} has a pre-tokenizer of type {}; only ByteLevel with GPT-2's pattern is known", source,
                     in_quotes(type_of(step), 40));
  }
  refuse_unless(step, "add_prefix_space", {json(false)}, source);
  refuse_unless(step, "use_regex", {json(splits)}, source);
  if (!splits && !step.contains("use_regex")) throw_user_error("{} splits the text twice", source);
}

// Only GPT-2's: ByteLevel, or its pattern by itself and then ByteLevel without one.
void check_pre_tokenizer(const json& tokenizer, const std::string& source) {
  const json step = tokenizer.value("pre_tokenizer", json());
  if (step.is_null()) throw_user_error("{} has no pre-tokenizer; only ByteLevel with GPT-2's pattern is known", source);
  if (type_of(step) != "Sequence") return check_byte_level(step, /*splits=*/true, source);
  const json steps = step.value("pretokenizers", json());
  if (steps.is_array() && steps.size() == 1) return check_byte_level(steps[0], /*splits=*/true, source);
  if (!steps.is_array() || steps.size() != 2 || type_of(steps[0]) != "Split")
    throw_user_error("{} has a sequence of pre-tokenizers; only ByteLevel with GPT-2's pattern is known", source);
  const json pattern = steps[0].value("pattern", json());
  if (pattern != json{{"Regex", WordSplitter::kPattern}} || steps[0].value("invert", json(false)) != json(false) ||
      steps[0].value("behavior", json()) != json("Isolated"))
    throw_user_error("{} splits texts by another pattern than GPT-2's, which is the only one known", source);
  check_byte_level(steps[1], /*splits=*/false, source);
}

void add_added_tokens(const json& tokenizer, Vocabulary& vocabulary, BpeDefinition& definition, const std::string& source) {
  const json none = json::array();
  const auto member = tokenizer.find("added_tokens");
  const json& list = member == tokenizer.end() || member->is_null() ? none : *member;
  if (!list.is_array()) throw_user_error("{} has added_tokens that are no list", source);
  for (const json& entry : list) {
    if (!entry.is_object() || !entry.contains("content") || !entry["content"].is_string() || !entry.contains("id"))
      throw_user_error("{} has an added token without content or id", source);
    const auto text = entry["content"].get<std::string>();
    if (text.empty()) throw_user_error("{} has an added token of no text", source);
    for (const char* key : {"single_word", "lstrip", "rstrip"}) {
      refuse_unless(entry, key, {json(false)}, fmt::format("{}, for the added token {},", source, in_quotes(text, 40)));
    }
    definition.added.push_back({.text = text, .token = vocabulary.add_literal(text, entry["id"])});
  }
  std::ranges::sort(definition.added, {}, &AddedToken::token);
  const auto twice = std::ranges::adjacent_find(definition.added, {}, &AddedToken::token);
  if (twice != definition.added.end()) throw_user_error("{} has the added token {} twice", source, in_quotes(twice->text, 40));
}

void find_end_of_text(BpeDefinition& definition) {
  for (const std::string_view name : kEndsOfText) {
    const auto found = std::ranges::find(definition.added, name, &AddedToken::text);
    if (found == definition.added.end()) continue;
    definition.end_of_text = found->token;
    return;
  }
}

BpeDefinition definition_of(const json& tokenizer, const std::string& source) {
  const auto model = tokenizer.find("model");
  if (model == tokenizer.end() || !model->is_object()) throw_user_error("{} is not a tokenizer: it has no model", source);
  if (model->contains("type") && (*model)["type"] != "BPE")
    throw_user_error("{} is a tokenizer of type {}; only BPE is known", source, in_quotes(type_of(*model), 40));
  refuse_unless(tokenizer, "normalizer", {json()}, source);
  check_pre_tokenizer(tokenizer, source);
  refuse_unless(*model, "dropout", {json(), json(0), json(0.0)}, source);
  refuse_unless(*model, "continuing_subword_prefix", {json(), json("")}, source);
  refuse_unless(*model, "end_of_word_suffix", {json(), json("")}, source);
  refuse_unless(*model, "byte_fallback", {json(), json(false)}, source);
  refuse_unless(*model, "ignore_merges", {json(), json(false)}, source);

  Vocabulary vocabulary(model->value("vocab", json()), source);
  BpeDefinition definition;
  MergeList merges(vocabulary);
  const json lines = model->value("merges", json());
  if (!lines.is_array()) throw_user_error("{} has no list of merges", source);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string place = fmt::format("{}, merge {},", source, i + 1);
    const json& line = lines[i];
    if (line.is_string()) {
      merges.add(std::string_view(line.get_ref<const std::string&>()), place);
    } else if (line.is_array() && line.size() == 2 && line[0].is_string() && line[1].is_string()) {
      merges.add(line[0].get<std::string>(), line[1].get<std::string>(), place);
    } else {
      throw_user_error("{} is not two tokens to merge", place);
    }
  }
  definition.merges = merges.take();
  add_added_tokens(tokenizer, vocabulary, definition, source);
  vocabulary.finish(definition);
  find_end_of_text(definition);
  return definition;
}

BpeDefinition definition_of(const json& vocab, const std::string& vocab_source, std::string_view merges_text,
                            const std::string& merges_source) {
  Vocabulary vocabulary(vocab, vocab_source);
  BpeDefinition definition;
  MergeList merges(vocabulary);
  for (std::size_t number = 1; !merges_text.empty(); ++number) {
    const std::size_t end = std::min(merges_text.find('\n'), merges_text.size());
    std::string_view line = merges_text.substr(0, end);
    merges_text.remove_prefix(std::min(end + 1, merges_text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    merges.add(line, fmt::format("{}, line {},", merges_source, number));
  }
  definition.merges = merges.take();
  const std::string end(kEndsOfText[0]);
  if (const std::optional<Token> token = vocabulary.find(end)) {
    definition.added.push_back({.text = end, .token = vocabulary.add_literal(end, json(*token))});
  }
  vocabulary.finish(definition);
  find_end_of_text(definition);
  return definition;
}

std::string read_whole(const std::filesystem::path& path) {
  const File file = open_regular_file(path);
  const std::int64_t bytes = file_size(file, path);
  if (bytes > kMostFileBytes)
    throw_user_error("{} has {} bytes; files of tokenizers are not read beyond {}", path.string(), bytes, kMostFileBytes);
  std::string text(static_cast<std::size_t>(bytes), '\0');
  read_at(file, path, 0, std::as_writable_bytes(std::span(text)));
  return text;
}

bool is_file(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

}  // namespace

BpeDefinition parse_tokenizer_json(std::string_view text, const std::string& source) {
  return definition_of(parse_json(text, source), source);
}

BpeDefinition parse_vocab_and_merges(std::string_view vocab, const std::string& vocab_source, std::string_view merges,
                                     const std::string& merges_source) {
  return definition_of(parse_json(vocab, vocab_source), vocab_source, merges, merges_source);
}

BpeDefinition read_bpe(const std::filesystem::path& path) {
  std::filesystem::path file = path;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    const std::array names{"tokenizer.json", "vocab.json", "encoder.json"};
    const auto* const found = std::ranges::find_if(names, [&](const char* name) { return is_file(path / name); });
    if (found == names.end()) throw_user_error("{} has neither a tokenizer.json nor a vocab.json", path.string());
    file = path / *found;
  }
  const std::string source = file.string();
  const json content = parse_json(read_whole(file), source);
  if (content.is_object() && content.contains("model") && content["model"].is_object()) return definition_of(content, source);
  if (file.filename() == "tokenizer.json") throw_user_error("{} is not a tokenizer: it has no model", source);
  // OpenAI's own files have the second name.
  for (const char* name : {"merges.txt", "vocab.bpe"}) {
    const std::filesystem::path merges = file.parent_path() / name;
    if (is_file(merges)) return definition_of(content, source, read_whole(merges), merges.string());
  }
  throw_user_error("there is no merges.txt beside {}", source);
}

}  // namespace snug::data
