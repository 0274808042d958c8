#include "data/text/bpe_files.h"

#include "data/support.h"
#include "data/text/small_bpe.h"

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
  EXPECT_EQ(refusal_of(""), "t.json is not JSON: it is wrong at byte 1");
  EXPECT_EQ(refusal_of("{\"model\": \xFF}"), "t.json is not JSON: it is wrong at byte 11");
  EXPECT_EQ(refusal_of("[1]"), "t.json is not a tokenizer: it has no model");
  EXPECT_EQ(refusal_of("{}"), "t.json is not a tokenizer: it has no model");
  EXPECT_EQ(refusal_after([](Json& json) { json["model"]["type"] = "WordPiece"; }),
            "t.json is a tokenizer of type 'WordPiece'; only BPE is known");
  EXPECT_EQ(refusal_after([](Json& json) { json["model"].erase("vocab"); }),
            "t.json has no vocabulary: an object with a number for each token");
  EXPECT_EQ(refusal_after([](Json& json) { json["model"].erase("merges"); }), "t.json has no list of merges");
}

TEST(BpeFiles, WhatWouldChangeTheTokensAndIsNotKnownIsRefused) {
  EXPECT_EQ(refusal_after([](Json& json) {
              json["normalizer"] = {{"type", "NFC"}};
            }),
            "t.json has normalizer {\"type\":\"NFC\"}, which is not known here");
  EXPECT_EQ(refusal_after([](Json& json) { json["pre_tokenizer"] = nullptr; }),
            "t.json has no pre-tokenizer; only ByteLevel with GPT-2's pattern is known");
  EXPECT_EQ(refusal_after([](Json& json) { json["pre_tokenizer"]["type"] = "Metaspace"; }),
            "t.json has a pre-tokenizer of type 'Metaspace'; only ByteLevel with GPT-2's pattern is known");
  EXPECT_EQ(refusal_after([](Json& json) { json["pre_tokenizer"]["add_prefix_space"] = true; }),
            "t.json has add_prefix_space true, which is not known here");
  EXPECT_EQ(refusal_after([](Json& json) { json["pre_tokenizer"]["use_regex"] = false; }),
            "t.json has use_regex false, which is not known here");
  const auto with_split = [](const Json& pattern) {
    return refusal_after([&](Json& json) {
      json["pre_tokenizer"] = {{"type", "Sequence"},
                               {"pretokenizers",
                                {{{"type", "Split"}, {"pattern", pattern}, {"behavior", "Isolated"}, {"invert", false}},
                                 {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
    });
  };
  EXPECT_EQ(with_split({{"Regex", "\\s+"}}), "t.json splits texts by another pattern than GPT-2's, which is the only one known");
  EXPECT_EQ(with_split(nullptr), "t.json splits texts by another pattern than GPT-2's, which is the only one known");
  EXPECT_EQ(refusal_after([](Json& json) { json["model"]["dropout"] = 0.1; }), "t.json has dropout 0.1, which is not known here");
  EXPECT_EQ(refusal_after([](Json& json) { json["model"]["end_of_word_suffix"] = "</w>"; }),
            "t.json has end_of_word_suffix \"</w>\", which is not known here");
  EXPECT_EQ(refusal_after([](Json& json) { json["model"]["byte_fallback"] = true; }),
            "t.json has byte_fallback true, which is not known here");
  EXPECT_EQ(refusal_after([](Json& json) {
              json["added_tokens"].push_back(added_token("<mask>", 258));
              json["added_tokens"][0]["lstrip"] = true;
            }),
            "t.json, for the added token '<mask>', has lstrip true, which is not known here");
}

TEST(BpeFiles, NumbersAreThoseFromZeroEachOnce) {
  EXPECT_EQ(refusal_after([](Json& json) { json["model"]["vocab"]["abc"] = 258; }),
            "t.json has 258 tokens, but none with the number 257");
  EXPECT_EQ(refusal_after([](Json& json) { json["model"]["vocab"]["abc"] = 256; }),
            "t.json gives two tokens the number 256: 'ab' and 'abc'");
  EXPECT_EQ(refusal_after([](Json& json) { json["model"]["vocab"]["abc"] = -1; }),
            "t.json gives the token 'abc' the number -1; tokens are numbered from 0");
  EXPECT_EQ(refusal_after([](Json& json) { json["model"]["vocab"]["abc"] = 1e9; }),
            "t.json gives the token 'abc' the number 1000000000.0; tokens are numbered from 0");
  EXPECT_EQ(refusal_after([](Json& json) { json["model"]["vocab"]["abc"] = 20'000'000; }),
            "t.json gives the token 'abc' the number 20000000; tokens are numbered from 0");
  EXPECT_EQ(refusal_after([](Json& json) { json["added_tokens"].push_back(added_token("<s>", 259)); }),
            "t.json has 259 tokens, but none with the number 258");
  EXPECT_EQ(refusal_after([](Json& json) { json["added_tokens"].push_back(added_token("<s>", 257)); }),
            "t.json gives two tokens the number 257: '<s>' and 'abc'");
  EXPECT_EQ(refusal_after([](Json& json) { json["added_tokens"].push_back(added_token("abc", 258)); }),
            "t.json gives the token 'abc' two numbers: 257 and 258");
  EXPECT_EQ(refusal_after([](Json& json) {
              json["added_tokens"] = {added_token("<s>", 258), added_token("<s>", 259)};
            }),
            "t.json gives the token '<s>' two numbers: 258 and 259");
  EXPECT_EQ(refusal_after([](Json& json) {
              json["added_tokens"] = {added_token("<s>", 258), added_token("<s>", 258)};
            }),
            "t.json has the added token '<s>' twice");
}

TEST(BpeFiles, TokensAreBytes) {
  EXPECT_EQ(refusal_after([](Json& json) {
              json["model"]["vocab"].erase("\xC4\x8A");
              json["model"]["vocab"]["new"] = 10;
            }),
            "t.json has no token for the byte 0x0a; a byte-level vocabulary has one for each of 256");
  EXPECT_EQ(refusal_after([](Json& json) { json["model"]["vocab"]["\xE2\x96\x81of"] = 258; }),
            "t.json has the token '\xE2\x96\x81of', which is not written in the characters of byte-level BPE");
  EXPECT_EQ(refusal_after([](Json& json) { json["model"]["vocab"][std::string(1025, 'x')] = 258; }),
            "t.json has a token of 1025 bytes; more than 1024 are not taken");
  EXPECT_EQ(refusal_after([](Json& json) { json["added_tokens"] = {added_token("", 258)}; }),
            "t.json has an added token of no text");
  EXPECT_EQ(refusal_after([](Json& json) {
              json["added_tokens"] = {{{"content", "<s>"}}};
            }),
            "t.json has an added token without content or id");
  EXPECT_EQ(refusal_after([](Json& json) { json["added_tokens"] = "<s>"; }), "t.json has added_tokens that are no list");
}

TEST(BpeFiles, MergesAreOfTokensThatAreThere) {
  EXPECT_EQ(refusal_of_merges("#version: 0.2\na b\na c\n"), "m.txt, line 3, merges 'a' and 'c', but the vocabulary has no 'ac'");
  EXPECT_EQ(refusal_of_merges("zz b"), "m.txt, line 1, merges 'zz' and 'b', but the vocabulary has no 'zz'");
  EXPECT_EQ(refusal_of_merges("a b\na b\n"), "m.txt, line 2, merges 'a' and 'b' a second time");
  EXPECT_EQ(refusal_of_merges("ab\n"), "m.txt, line 1, is not two tokens with a space between them");
  EXPECT_EQ(refusal_of_merges("a b c\n"), "m.txt, line 1, is not two tokens with a space between them");
  EXPECT_EQ(refusal_of_merges("a \n"), "m.txt, line 1, is not two tokens to merge");
  EXPECT_EQ(refusal_after([](Json& json) { json["model"]["merges"].push_back("c ab"); }),
            "t.json, merge 3, merges 'c' and 'ab', but the vocabulary has no 'cab'");
  EXPECT_EQ(refusal_after([](Json& json) {
              json["model"]["merges"].push_back({"a", "b", "c"});
            }),
            "t.json, merge 3, is not two tokens to merge");
  EXPECT_EQ(refusal_after([](Json& json) { json["model"]["merges"].push_back(7); }),
            "t.json, merge 3, is not two tokens to merge");
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
  EXPECT_EQ(refusal(at("two")), "there is no merges.txt beside " + at("two/vocab.json").string());
  write_text(at("two/merges.txt"), merges_txt(merges));
  EXPECT_EQ(read_bpe(at("two")), definition);
  EXPECT_EQ(read_bpe(at("two/vocab.json")), definition);
  write_text(at("openai/encoder.json"), vocab_of(merges).dump());
  write_text(at("openai/vocab.bpe"), merges_txt(merges));
  EXPECT_EQ(read_bpe(at("openai")), definition);

  fs::create_directory(at("empty"));
  EXPECT_EQ(refusal(at("empty")), at("empty").string() + " has neither a tokenizer.json nor a vocab.json");
  write_text(at("wrong/tokenizer.json"), vocab_of(merges).dump());
  EXPECT_EQ(refusal(at("wrong")), at("wrong/tokenizer.json").string() + " is not a tokenizer: it has no model");
  EXPECT_EQ(user_error_of([&] { open_tokenizer(at("nowhere").string()); }),
            "there is no tokenizer '" + at("nowhere").string() +
                "': give bytes, or the path of a tokenizer.json or of a folder with it, or with vocab.json and merges.txt");
  EXPECT_EQ(open_tokenizer(at("two").string())->name(), at("two").string());
}

}  // namespace
}  // namespace snug::data
