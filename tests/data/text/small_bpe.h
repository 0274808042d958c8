// Byte-level BPE tokenizers made on the spot: the 256 bytes in the order of their values, then a token for each merge.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "data/text/bpe_alphabet.h"
#include "data/text/bpe_files.h"

namespace snug::data {

// The bytes of the two sides.
using MergedBytes = std::vector<std::pair<std::string, std::string>>;

inline nlohmann::ordered_json vocab_of(const MergedBytes& merges) {
  nlohmann::ordered_json vocab = nlohmann::ordered_json::object();
  int id = 0;
  for (int byte = 0; byte < 256; ++byte) vocab[spell_bytes(std::string(1, static_cast<char>(byte)))] = id++;
  for (const auto& [left, right] : merges) {
    const std::string text = spell_bytes(left + right);
    if (!vocab.contains(text)) vocab[text] = id++;
  }
  return vocab;
}

inline std::string merges_txt(const MergedBytes& merges) {
  std::string text = "#version: 0.2\n";
  for (const auto& [left, right] : merges) text += spell_bytes(left) + " " + spell_bytes(right) + "\n";
  return text;
}

inline nlohmann::ordered_json tokenizer_json(const MergedBytes& merges) {
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  for (const auto& [left, right] : merges) lines.push_back(spell_bytes(left) + " " + spell_bytes(right));
  return {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", nlohmann::ordered_json::array()},
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}}},
      {"post_processor", nullptr},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model", {{"type", "BPE"}, {"dropout", nullptr}, {"unk_token", nullptr}, {"vocab", vocab_of(merges)}, {"merges", lines}}}};
}

inline nlohmann::ordered_json added_token(const std::string& text, int id) {
  return {{"id", id},        {"content", text},     {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

inline BpeDefinition small_definition(const MergedBytes& merges) {
  return parse_vocab_and_merges(vocab_of(merges).dump(), "vocab.json", merges_txt(merges), "merges.txt");
}

}  // namespace snug::data
