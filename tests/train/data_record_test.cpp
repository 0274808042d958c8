#include "train/data_record.h"

#include <gtest/gtest.h>

#include "support/files.h"
#include "support/messages.h"
#include <snug/error.h>

namespace snug::train {

using support::message_of;

namespace {

data::Description pets() {
  return {.name = "pets",
          .channels = 3,
          .height = 32,
          .width = 32,
          .classes = 2,
          .class_names = {"cat", "dog"},
          .train_examples = 100,
          .test_examples = 10,
          .mean = {0.1 + 0.2, 100, 200},
          .std = {1, 2.5, 1 / 3.0},
          .fingerprint = data::fingerprint_of("a") + data::fingerprint_of("b")};
}

data::Description novel() {
  return {.name = "novel.txt",
          .kind = data::Kind::text,
          .train_examples = 100,
          .test_examples = 12,
          .fingerprint = data::fingerprint_of("novel.txt 1000"),
          .text = {.tokenizer = "bytes",
                   .vocabulary = 256,
                   .tokenizer_fingerprint = 7,
                   .length = 8,
                   .train_tokens = 900,
                   .test_tokens = 100,
                   .train_bytes = 900,
                   .test_bytes = 100,
                   .sample = 0xFEDC'BA98'7654'3210U}};
}

TEST(DataRecord, ComesBackEqual) {
  data::Description data = pets();
  data.class_names = {"c\xFF\"t", "d\xC3\xB6g\n"};
  data.name = "\xFF";
  EXPECT_EQ(parse_data_record(print_data_record(data), "'x'"), data);

  data::Description text = novel();
  text.name = "\xFF.txt";
  text.text.tokenizer = "vocabularies/\xFF\"";
  EXPECT_EQ(parse_data_record(print_data_record(text), "'x'"), text);
}

TEST(DataRecord, TextsThatAreNoneAreRefused) {
  const std::string good = print_data_record(pets());
  const auto message = [](const std::string& text) {
    return message_of<UserError>([&] { parse_data_record(text, "'data.json'"); });
  };
  const std::string refusal = "'data.json' does not say what data the run was trained on; it is damaged";
  EXPECT_EQ(message(""), refusal);
  EXPECT_EQ(message("{}"), refusal);
  EXPECT_EQ(message(good.substr(0, good.size() - 1)), refusal);
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_EQ(message(replaced("\"height\":32", "\"height\":0")), refusal);
  EXPECT_EQ(message(replaced("\"channels\":3", "\"channels\":4")), refusal) << "three means";
  EXPECT_EQ(message(replaced("\"fingerprint\":\"", "\"fingerprint\":\"x")), refusal);

  const std::string text = print_data_record(novel());
  const auto replaced_in_text = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    return changed.replace(changed.find(from), from.size(), to);
  };
  EXPECT_EQ(message(replaced_in_text("\"text\"", "\"songs\"")), refusal);
  EXPECT_EQ(message(replaced_in_text("\"length\":8", "\"length\":0")), refusal);
  EXPECT_EQ(message(replaced_in_text("\"vocabulary\":256", "\"vocabulary\":3000000000")), refusal);
  EXPECT_EQ(message(replaced_in_text("\"sample\":\"", "\"sample\":\"x")), refusal);
  EXPECT_EQ(message(text.substr(0, text.size() - 1)), refusal);
}

TEST(DataRecord, SaysTheFirstThingThatDiffers) {
  const auto difference = [](const auto& change) {
    data::Description now = pets();
    change(now);
    return describe_difference(pets(), now);
  };
  EXPECT_EQ(difference([](auto& now) { now.name = "elsewhere"; }), "");
  EXPECT_TRUE(support::mentions(difference([](auto& now) {
                                  now.class_names = {"dog", "cat"};
                                }),
                                {"class", "0", "'dog'", "'cat'"}));
  EXPECT_TRUE(support::mentions(difference([](auto& now) { now.height = 64; }), {"64x32", "3", "channels", "32x32"}));
  EXPECT_TRUE(support::mentions(difference([](auto& now) { now.test_examples = 9; }), {"100", "10", "9", "testing"}));
  EXPECT_TRUE(support::mentions(difference([](auto& now) { ++now.fingerprint; }), {"files", "other names"}));
  EXPECT_TRUE(support::mentions(difference([](auto& now) { now.mean[1] = 101; }), {"changed", "0.3", "101", "200", "100"}));
}

TEST(DataRecord, SaysTheFirstThingThatDiffersInAText) {
  const auto difference = [](const auto& change) {
    data::Description now = novel();
    change(now);
    return describe_difference(novel(), now);
  };
  EXPECT_EQ(difference([](auto& now) {
              now.name = "moved.txt";
              now.text.tokenizer = "another name of the same";
              now.notes = {"a note"};
            }),
            "");
  EXPECT_TRUE(support::mentions(difference([](auto& now) { now.text.length = 16; }), {"examples", "16", "8"}));
  EXPECT_TRUE(support::mentions(difference([](auto& now) { now.text.train_bytes = 901; }), {"901", "100", "testing", "900"}));
  EXPECT_TRUE(support::mentions(difference([](auto& now) { ++now.fingerprint; }), {"files", "names", "sizes"}));
  EXPECT_TRUE(support::mentions(difference([](auto& now) { ++now.text.sample; }), {"text has changed"}));
  EXPECT_TRUE(support::mentions(difference([](auto& now) { ++now.text.test_tokens; }), {"text has changed"}));
  EXPECT_TRUE(support::mentions(describe_difference(novel(), pets()), {"has images", "a text"}));
  EXPECT_TRUE(support::mentions(describe_difference(pets(), novel()), {"is a text", "images"}));
}

TEST(DataRecord, TheTokensOfAnotherTokenizerAreRefused) {
  data::Description now = novel();
  now.text.tokenizer = "another name of the same";
  check_tokenizer(novel(), now.text);
  now.text.tokenizer = "gpt2";
  ++now.text.tokenizer_fingerprint;
  const std::string refusal = support::message_of<UserError>([&] { check_tokenizer(novel(), now.text); });
  EXPECT_TRUE(support::mentions(refusal, {"'gpt2'", "tokenizer", "--tokenizer"})) << refusal;
  EXPECT_EQ(support::message_of<UserError>([&] { same_data(novel(), now, std::nullopt); }), refusal);
}

TEST(DataRecord, ARunGoesOnWithTheSameTextAlone) {
  data::Description now = novel();
  now.name = "moved.txt";
  EXPECT_EQ(same_data(novel(), now, std::nullopt), novel());
  now.text.sample = 1;
  EXPECT_THROW(same_data(novel(), now, std::nullopt), UserError);
  EXPECT_THROW(same_data(novel(), now, novel().fingerprint - now.fingerprint), UserError) << "no example of a text is removed";
}

TEST(DataRecord, ClassesThatAreOnlyNumberedGoWithAsManyNamedOnes) {
  data::Description numbered = pets();
  numbered.class_names = {"0", "1"};
  EXPECT_EQ(describe_class_difference(pets(), numbered), "");
  EXPECT_EQ(describe_class_difference(numbered, pets()), "");
  numbered.class_names.emplace_back("2");
  numbered.classes = 3;
  EXPECT_TRUE(support::mentions(describe_class_difference(pets(), numbered), {"0, 1, 2", "cat, dog"}));
}

TEST(DataRecord, OnlyTheExampleThatCouldNotBeReadMayBeGone) {
  data::Description now = pets();
  now.train_examples = 99;
  now.fingerprint -= data::fingerprint_of("b");
  now.mean[0] = 7;
  const data::Description same = same_data(pets(), now, data::fingerprint_of("b"));
  EXPECT_EQ(same.train_examples, 99);
  EXPECT_EQ(same.fingerprint, now.fingerprint);
  EXPECT_EQ(same.mean, pets().mean) << "nothing is normalized otherwise";
  EXPECT_EQ(same_data(pets(), pets(), data::fingerprint_of("b")), pets()) << "it was repaired";
  EXPECT_THROW(same_data(pets(), now, data::fingerprint_of("a")), UserError) << "another one is gone";
  EXPECT_THROW(same_data(pets(), now, std::nullopt), UserError);
}

}  // namespace

}  // namespace snug::train
