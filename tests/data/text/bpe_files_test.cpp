#include "data/text/bpe_files.h"

#include "data/support.h"
#include "data/text/small_bpe.h"
#include "support/messages.h"

namespace snug::data {
namespace {

using Json = nlohmann::ordered_json;

std::string refusal_of(const std::string& text) {
  return user_error_of([&] { parse_tokenizer_json(text, "t.json"); });
}

// What is said about a tokenizer.json after a change.
template <typename Change>
std::string refusal_after(const Change& change) {
  Json json = tokenizer_json({{"a", "b"}, {"ab", "c"}});
  change(json);
  return refusal_of(json.dump());
}

std::string refusal_of_merges(const std::string& merges) {
  return user_error_of([&] { parse_vocab_and_merges(vocab_of({{"a", "b"}}).dump(), "v.json", merges, "m.txt"); });
}

TEST(BpeAlphabet, SpellsEveryByte) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(bytes_spelled(spell_bytes(all)), all);
  EXPECT_EQ(spell_bytes(" a\n\xC3"),
            "\xC4\xA0"
            "a"
            "\xC4\x8A\xC3\x83");
  EXPECT_EQ(bytes_spelled(" "), std::nullopt);
  EXPECT_EQ(bytes_spelled("\xC2\xAD"), std::nullopt) << "a soft hyphen is spelled as another";
  EXPECT_EQ(bytes_spelled("\xC5\x84"), std::nullopt) << "one beyond the last";
  EXPECT_EQ(bytes_spelled("\xFF"), std::nullopt);
}

TEST(BpeFiles, BothFormsSayTheSame) {
  const MergedBytes merges{{" ", "a"}, {"\n", "\xC3"}, {" a", "b"}};
  const BpeDefinition definition = small_definition(merges);
  EXPECT_EQ(definition.tokens.size(), 259U);
  EXPECT_EQ(definition.tokens[258], " ab");
  EXPECT_EQ(definition.bytes['a'], 'a');
  EXPECT_EQ(definition.merges[2], (Merge{.left = 256, .right = 'b', .merged = 258}));
  EXPECT_EQ(parse_tokenizer_json(tokenizer_json(merges).dump(), "t.json"), definition);

  Json pairs = tokenizer_json(merges);
  pairs["model"]["merges"] = Json::array();
  for (const auto& [left, right] : merges) pairs["model"]["merges"].push_back({spell_bytes(left), spell_bytes(right)});
  pairs["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", Json::array({pairs["pre_tokenizer"]})}};
  EXPECT_EQ(parse_tokenizer_json(pairs.dump(), "t.json"), definition);

  Json split = tokenizer_json(merges);
  const char* const pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
  split["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}},
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}}}}};
  EXPECT_EQ(parse_tokenizer_json(split.dump(), "t.json"), definition);
}

TEST(BpeFiles, TheEndOfTextIsAnAddedToken) {
  Json vocab = vocab_of({{"a", "b"}});
  vocab["<|endoftext|>"] = 257;
  const BpeDefinition definition = parse_vocab_and_merges(vocab.dump(), "v.json", "a b\r\n\n", "m.txt");
  EXPECT_EQ(definition.end_of_text, 257);
  EXPECT_EQ(definition.added, (std::vector<AddedToken>{{.text = "<|endoftext|>", .token = 257}}));

  Json json = tokenizer_json({{"a", "b"}});
  json["model"]["vocab"]["<|endoftext|>"] = 257;
  json["added_tokens"].push_back(added_token("<|endoftext|>", 257));
  EXPECT_EQ(parse_tokenizer_json(json.dump(), "t.json"), definition) << "in the vocabulary and beside it";
  json["model"]["vocab"].erase("<|endoftext|>");
  EXPECT_EQ(parse_tokenizer_json(json.dump(), "t.json"), definition) << "only beside it";
  json["added_tokens"].push_back(added_token("<pad> \xC3\xA9", 258));
  EXPECT_EQ(parse_tokenizer_json(json.dump(), "t.json").tokens[258], "<pad> \xC3\xA9") << "its text is no spelling";
}

TEST(BpeFiles, WhatIsNoTokenizerIsRefused) {
  EXPECT_TRUE(support::mentions(refusal_of(""), {"t.json", "JSON", "wrong", "1"}));
  EXPECT_TRUE(support::mentions(refusal_of("{\"model\": \xFF}"), {"t.json", "JSON", "wrong", "11"}));
  EXPECT_TRUE(support::mentions(refusal_of("[1]"), {"t.json", "no model"}));
  EXPECT_TRUE(support::mentions(refusal_of("{}"), {"t.json", "no model"}));
  EXPECT_TRUE(support::mentions(refusal_after([](Json& json) { json["model"]["type"] = "WordPiece"; }),
                                {"t.json", "'WordPiece'", "BPE", "known"}));
  EXPECT_TRUE(support::mentions(refusal_after([](Json& json) { json["model"].erase("vocab"); }), {"t.json", "no vocabulary"}));
  EXPECT_TRUE(
      support::mentions(refusal_after([](Json& json) { json["model"].erase("merges"); }), {"t.json", "no list", "merges"}));
}

TEST(BpeFiles, WhatWouldChangeTheTokensAndIsNotKnownIsRefused) {
  EXPECT_TRUE(support::mentions(refusal_after([](Json& json) {
                                  json["normalizer"] = {{"type", "NFC"}};
                                }),
                                {"t.json", "normalizer", "NFC"}));
  EXPECT_TRUE(support::mentions(refusal_after([](Json& json) { json["pre_tokenizer"] = nullptr; }),
                                {"t.json", "no pre-tokenizer", "GPT-2"}));
  EXPECT_TRUE(support::mentions(refusal_after([](Json& json) { json["pre_tokenizer"]["type"] = "Metaspace"; }),
                                {"t.json", "pre-tokenizer", "'Metaspace'", "GPT-2"}));
  EXPECT_TRUE(support::mentions(refusal_after([](Json& json) { json["pre_tokenizer"]["add_prefix_space"] = true; }),
                                {"t.json", "add_prefix_space", "true"}));
  EXPECT_TRUE(support::mentions(refusal_after([](Json& json) { json["pre_tokenizer"]["use_regex"] = false; }),
                                {"t.json", "use_regex", "false"}));
  const auto with_split = [](const Json& pattern) {
    return refusal_after([&](Json& json) {
      json["pre_tokenizer"] = {{"type", "Sequence"},
                               {"pretokenizers",
                                {{{"type", "Split"}, {"pattern", pattern}, {"behavior", "Isolated"}, {"invert", false}},
                                 {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
    });
  };
  EXPECT_TRUE(support::mentions(with_split({{"Regex", "\\s+"}}), {"t.json", "splits", "GPT-2"}));
  EXPECT_TRUE(support::mentions(with_split(nullptr), {"t.json", "splits", "GPT-2"}));
  EXPECT_TRUE(support::mentions(refusal_after([](Json& json) { json["model"]["dropout"] = 0.1; }), {"t.json", "dropout", "0.1"}));
  EXPECT_TRUE(support::mentions(refusal_after([](Json& json) { json["model"]["end_of_word_suffix"] = "</w>"; }),
                                {"t.json", "end_of_word_suffix", "</w>"}));
  EXPECT_TRUE(support::mentions(refusal_after([](Json& json) { json["model"]["byte_fallback"] = true; }),
                                {"t.json", "byte_fallback", "true"}));
  EXPECT_TRUE(support::mentions(refusal_after([](Json& json) {
                                  json["added_tokens"].push_back(added_token("<mask>", 258));
                                  json["added_tokens"][0]["lstrip"] = true;
                                }),
                                {"t.json", "'<mask>'", "lstrip"}));
}

TEST(BpeFiles, NumbersAreThoseFromZeroEachOnce) {
  EXPECT_TRUE(support::mentions(refusal_after([](Json& json) { json["model"]["vocab"]["abc"] = 258; }),
                                {"t.json", "258", "none", "257"}));
  EXPECT_TRUE(support::mentions(refusal_after([](Json& json) { json["model"]["vocab"]["abc"] = 256; }),
                                {"t.json", "gives", "256", "'ab'", "'abc'"}));
  EXPECT_TRUE(support::mentions(refusal_after([](Json& json) { json["model"]["vocab"]["abc"] = -1; }),
                                {"t.json", "'abc'", "-1", "numbered", "0"}));
  EXPECT_TRUE(support::mentions(refusal_after([](Json& json) { json["model"]["vocab"]["abc"] = 1e9; }),
                                {"t.json", "'abc'", "1000000000.0", "0", "numbered"}));
  EXPECT_TRUE(support::mentions(refusal_after([](Json& json) { json["model"]["vocab"]["abc"] = 20'000'000; }),
                                {"t.json", "'abc'", "20000000", "0", "numbered"}));
  EXPECT_TRUE(support::mentions(refusal_after([](Json& json) { json["added_tokens"].push_back(added_token("<s>", 259)); }),
                                {"t.json", "259", "none", "258"}));
  EXPECT_TRUE(support::mentions(refusal_after([](Json& json) { json["added_tokens"].push_back(added_token("<s>", 257)); }),
                                {"t.json", "gives", "257", "'<s>'", "'abc'"}));
  EXPECT_TRUE(support::mentions(refusal_after([](Json& json) { json["added_tokens"].push_back(added_token("abc", 258)); }),
                                {"t.json", "gives", "'abc'", "257", "258"}));
  EXPECT_TRUE(support::mentions(refusal_after([](Json& json) {
                                  json["added_tokens"] = {added_token("<s>", 258), added_token("<s>", 259)};
                                }),
                                {"t.json", "gives", "'<s>'", "258", "259"}));
  EXPECT_TRUE(support::mentions(refusal_after([](Json& json) {
                                  json["added_tokens"] = {added_token("<s>", 258), added_token("<s>", 258)};
                                }),
                                {"t.json", "added", "'<s>'"}));
}

TEST(BpeFiles, TokensAreBytes) {
  EXPECT_TRUE(support::mentions(refusal_after([](Json& json) {
                                  json["model"]["vocab"].erase("\xC4\x8A");
                                  json["model"]["vocab"]["new"] = 10;
                                }),
                                {"t.json", "0x0a", "256"}));
  EXPECT_TRUE(support::mentions(refusal_after([](Json& json) { json["model"]["vocab"]["\xE2\x96\x81of"] = 258; }),
                                {"t.json", "'\xE2\x96\x81of'", "characters", "BPE"}));
  EXPECT_TRUE(support::mentions(refusal_after([](Json& json) { json["model"]["vocab"][std::string(1025, 'x')] = 258; }),
                                {"t.json", "1025", "1024", "taken"}));
  EXPECT_TRUE(support::mentions(refusal_after([](Json& json) { json["added_tokens"] = {added_token("", 258)}; }),
                                {"t.json", "added token", "no text"}));
  EXPECT_TRUE(support::mentions(refusal_after([](Json& json) {
                                  json["added_tokens"] = {{{"content", "<s>"}}};
                                }),
                                {"t.json", "content"}));
  EXPECT_TRUE(
      support::mentions(refusal_after([](Json& json) { json["added_tokens"] = "<s>"; }), {"t.json", "added_tokens", "list"}));
}

TEST(BpeFiles, MergesAreOfTokensThatAreThere) {
  EXPECT_TRUE(
      support::mentions(refusal_of_merges("#version: 0.2\na b\na c\n"), {"m.txt", "line 3", "merges", "'a'", "'c'", "'ac'"}));
  EXPECT_TRUE(support::mentions(refusal_of_merges("zz b"), {"m.txt", "line 1", "merges", "'zz'", "'b'"}));
  EXPECT_TRUE(support::mentions(refusal_of_merges("a b\na b\n"), {"m.txt", "line 2", "'a'", "'b'", "second"}));
  EXPECT_TRUE(support::mentions(refusal_of_merges("ab\n"), {"m.txt", "line 1", "space"}));
  EXPECT_TRUE(support::mentions(refusal_of_merges("a b c\n"), {"m.txt", "line 1", "space"}));
  EXPECT_TRUE(support::mentions(refusal_of_merges("a \n"), {"m.txt", "line 1", "merge"}));
  EXPECT_TRUE(support::mentions(refusal_after([](Json& json) { json["model"]["merges"].push_back("c ab"); }),
                                {"t.json", "merge", "3", "'c'", "'ab'", "'cab'"}));
  EXPECT_TRUE(support::mentions(refusal_after([](Json& json) {
                                  json["model"]["merges"].push_back({"a", "b", "c"});
                                }),
                                {"t.json", "3", "tokens"}));
  EXPECT_TRUE(
      support::mentions(refusal_after([](Json& json) { json["model"]["merges"].push_back(7); }), {"t.json", "3", "tokens"}));
}

TEST(BpeFiles, AreFoundInTheirFolder) {
  const TestFolder folder;
  const MergedBytes merges{{"a", "b"}};
  const BpeDefinition definition = small_definition(merges);
  const auto at = [&](const char* name) { return folder.path() / name; };
  const auto refusal = [&](const fs::path& path) { return user_error_of([&] { read_bpe(path); }); };
  write_text(at("json/tokenizer.json"), tokenizer_json(merges).dump());
  EXPECT_EQ(read_bpe(at("json")), definition);
  EXPECT_EQ(read_bpe(at("json/tokenizer.json")), definition);
  write_text(at("named.json"), tokenizer_json(merges).dump());
  EXPECT_EQ(read_bpe(at("named.json")), definition);

  write_text(at("two/vocab.json"), vocab_of(merges).dump());
  EXPECT_TRUE(support::mentions(refusal(at("two")), {"merges.txt", at("two/vocab.json").string()}));
  write_text(at("two/merges.txt"), merges_txt(merges));
  EXPECT_EQ(read_bpe(at("two")), definition);
  EXPECT_EQ(read_bpe(at("two/vocab.json")), definition);
  write_text(at("openai/encoder.json"), vocab_of(merges).dump());
  write_text(at("openai/vocab.bpe"), merges_txt(merges));
  EXPECT_EQ(read_bpe(at("openai")), definition);

  fs::create_directory(at("empty"));
  EXPECT_TRUE(support::mentions(refusal(at("empty")), {at("empty").string(), "tokenizer.json", "vocab.json"}));
  write_text(at("wrong/tokenizer.json"), vocab_of(merges).dump());
  EXPECT_TRUE(support::mentions(refusal(at("wrong")), {at("wrong/tokenizer.json").string(), "no model"}));
  EXPECT_TRUE(support::mentions(user_error_of([&] { open_tokenizer(at("nowhere").string()); }),
                                {at("nowhere").string(), "path", "tokenizer.json", "vocab.json", "merges.txt"}));
  EXPECT_EQ(open_tokenizer(at("two").string())->name(), at("two").string());
}

}  // namespace
}  // namespace snug::data
