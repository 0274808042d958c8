#include "data/text/text_dataset.h"

#include <cstring>
#include <set>

#include "data/sha256.h"
#include "data/stream.h"
#include "data/support.h"
#include "data/text/bpe_tokenizer.h"
#include "data/text/embedded_text.h"
#include "data/text/small_bpe.h"

namespace snug::data {
namespace {

struct Example {
  std::vector<Token> tokens;
  std::vector<Token> labels;
};

Example read_example(const Dataset& dataset, std::uint64_t epoch, Split split, std::int64_t index) {
  const auto length = static_cast<std::size_t>(dataset.description().text.length);
  Example example{.tokens = std::vector<Token>(length, -1), .labels = std::vector<Token>(length, -1)};
  const std::array<std::span<std::byte>, 2> inputs{std::as_writable_bytes(std::span(example.tokens)),
                                                   std::as_writable_bytes(std::span(example.labels))};
  dataset.read_in_epoch(epoch, split, index, inputs);
  return example;
}

std::unique_ptr<Dataset> open_bytes(const fs::path& path, std::int64_t length) {
  return open_text(path.string(), TextOptions{.length = length});
}

// The text of the letters that are predicted on a side in an epoch.
std::string predicted(const Dataset& dataset, Split split, std::uint64_t epoch = 0) {
  std::string text;
  for (std::int64_t i = 0; i < dataset.description().examples(split); ++i) {
    for (const Token label : read_example(dataset, epoch, split, i).labels) {
      if (label != kIgnoredLabel) text += static_cast<char>(label);
    }
  }
  return text;
}

std::string letters(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += static_cast<char>('a' + i * 7 % 26 % (1 + i / 26 % 26));
  return text;
}

std::string open_error(const fs::path& path, std::int64_t length) {
  return user_error_of([&] { open_bytes(path, length); });
}

void expect_has(const std::string& text, const std::string& part) { EXPECT_NE(text.find(part), std::string::npos) << text; }

TEST(TextDataset, IsDescribed) {
  const TestFolder folder;
  write_text(folder.path() / "a.txt", letters(1000));
  const auto dataset = open_bytes(folder.path() / "a.txt", 30);
  const Description& description = dataset->description();
  EXPECT_EQ(description.kind, Kind::text);
  EXPECT_EQ(description.name, (folder.path() / "a.txt").string());
  EXPECT_EQ(description.text.tokenizer, "bytes");
  EXPECT_EQ(description.text.vocabulary, 256);
  EXPECT_EQ(description.text.tokenizer_fingerprint, byte_tokenizer()->fingerprint());
  EXPECT_EQ(description.text.length, 30);
  EXPECT_EQ(description.text.train_bytes, 900);
  EXPECT_EQ(description.text.test_bytes, 100);
  EXPECT_EQ(description.text.train_tokens, 900);
  EXPECT_EQ(description.text.test_tokens, 100);
  EXPECT_EQ(description.test_examples, 4);  // 99 predictions
  EXPECT_EQ(description.fingerprint, fingerprint_of("1000"));
  EXPECT_TRUE(description.notes.empty());
  const std::vector<Input> inputs = dataset->inputs();
  ASSERT_EQ(inputs.size(), 2U);
  EXPECT_EQ(inputs[0], (Input{.name = "tokens", .example_bytes = 120, .content = Input::Content::tokens}));
  EXPECT_EQ(inputs[1], (Input{.name = "labels", .example_bytes = 120, .content = Input::Content::tokens}));
}

TEST(TextDataset, LabelsAreTheNextTokens) {
  const TestFolder folder;
  write_text(folder.path() / "a.txt", "0123456789abcdefghij");
  const auto dataset = open_bytes(folder.path() / "a.txt", 5);
  ASSERT_EQ(dataset->description().train_examples, 3);
  const Example second = read_example(*dataset, 0, Split::train, 1);
  EXPECT_EQ(second.tokens, (std::vector<Token>{'5', '6', '7', '8', '9'}));
  EXPECT_EQ(second.labels, (std::vector<Token>{'6', '7', '8', '9', 'a'}));
}

TEST(TextDataset, TheLastTestWindowIsPaddedSoThatEveryTokenIsPredicted) {
  const TestFolder folder;
  const std::string text = letters(1000);
  write_text(folder.path() / "a.txt", text);
  const auto dataset = open_bytes(folder.path() / "a.txt", 30);
  EXPECT_EQ(predicted(*dataset, Split::test), text.substr(901));
  const Example last = read_example(*dataset, 0, Split::test, 3);
  EXPECT_EQ(last.labels[8], static_cast<Token>(text.back()));
  EXPECT_EQ(last.tokens[8], static_cast<Token>(text[998]));
  for (std::size_t i = 9; i < 30; ++i) {
    EXPECT_EQ(last.tokens[i], 0);
    EXPECT_EQ(last.labels[i], kIgnoredLabel);
  }
}

TEST(TextDataset, WindowsBeginElsewhereInEveryEpochAndStayInTheTrainingPart) {
  const TestFolder folder;
  std::string text;  // every pair of letters at most once
  for (char a = 'A'; a <= 'Z'; ++a) {
    for (char b = 'a'; b <= 'z'; ++b) (text += a) += b;
  }
  write_text(folder.path() / "a.txt", text);
  const std::size_t train_bytes = text.size() - text.size() / 10;
  const auto dataset = open_bytes(folder.path() / "a.txt", 40);
  const std::int64_t windows = (static_cast<std::int64_t>(train_bytes) - 1) / 40;
  ASSERT_EQ(dataset->description().train_examples, windows - 1);
  std::set<std::size_t> begins;
  for (std::uint64_t epoch = 0; epoch < 60; ++epoch) {
    const std::string seen = predicted(*dataset, Split::train, epoch);
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(windows - 1) * 40);
    const std::size_t at = text.find(seen);
    ASSERT_NE(at, std::string::npos);
    EXPECT_LE(at + seen.size(), train_bytes);
    EXPECT_GE(at, 1U);
    EXPECT_LE(at, 40U);
    begins.insert(at);
    if (epoch == 0) {
      EXPECT_EQ(at, 1U);
    }
  }
  EXPECT_GT(begins.size(), 25U) << "of 40, drawn 60 times";
  EXPECT_EQ(predicted(*dataset, Split::test, 7), predicted(*dataset, Split::test)) << "tests stay the same";
}

TEST(TextDataset, TextsOfFewWindowsKeepThemAll) {
  const TestFolder folder;
  write_text(folder.path() / "a.txt", letters(100));
  const auto dataset = open_bytes(folder.path() / "a.txt", 10);
  EXPECT_EQ(dataset->description().train_examples, 8);
  EXPECT_EQ(predicted(*dataset, Split::train, 5), predicted(*dataset, Split::train, 0));
}

TEST(TextDataset, StreamsMoveTheWindowsWithTheEpochAndResume) {
  const TestFolder folder;
  write_text(folder.path() / "a.txt", letters(5000));
  const auto dataset = open_bytes(folder.path() / "a.txt", 20);
  const auto second_epoch = [&](std::uint64_t from_epoch) {
    Stream stream(*dataset, Split::train, 16, {.seed = 3, .shuffle = true, .epoch = from_epoch, .repeat = true});
    for (;;) {
      const std::optional<Batch> batch = stream.next();
      if (batch->epoch < 2) continue;
      return std::vector<std::byte>(batch->inputs[0].bytes.begin(), batch->inputs[0].bytes.end());
    }
  };
  EXPECT_EQ(second_epoch(0), second_epoch(2));
}

TEST(TextDataset, TheLastTenthBeginsAtACharacter) {
  const TestFolder folder;
  std::string text;
  for (int i = 0; i < 67; ++i) text += "\xE2\x82\xAC";  // 201 bytes; a tenth would begin at byte 181, in the middle of one
  write_text(folder.path() / "a.txt", text);
  const TextFacts facts = open_bytes(folder.path() / "a.txt", 3)->description().text;
  EXPECT_EQ(facts.train_bytes, 183);
  EXPECT_EQ(facts.test_bytes, 18);
}

TEST(TextDataset, AFolderIsItsTextsInTheOrderOfTheirPaths) {
  const TestFolder folder;
  const fs::path path = folder.path() / "books";
  write_text(path / "b.txt", letters(50));
  write_text(path / "a/z.TXT", letters(30));
  write_text(path / "a/b/c.txt", letters(20));
  write_text(path / "empty.txt", "");
  write_text(path / ".hidden.txt", "hidden");
  write_text(path / "notes.md", "left out");
  ASSERT_TRUE(is_text_data(path.string()));
  const auto dataset = open_bytes(path, 9);
  const std::string text = letters(20) + letters(30) + letters(50);
  EXPECT_EQ(predicted(*dataset, Split::train), text.substr(1, 81));
  EXPECT_EQ(predicted(*dataset, Split::test), text.substr(91));
  EXPECT_EQ(dataset->description().fingerprint, fingerprint_of("b.txt 50") + fingerprint_of("a/z.TXT 30") +
                                                    fingerprint_of("a/b/c.txt 20") + fingerprint_of("empty.txt 0"));
  ASSERT_EQ(dataset->description().notes.size(), 2U);
  expect_has(dataset->description().notes[0], "1 file of " + path.string() + " is empty");
  expect_has(dataset->description().notes[1], "1 file of " + path.string() + " is not a .txt file and is left out");
}

TEST(TextDataset, AFolderThatIsDividedIsTakenAsItIs) {
  const TestFolder folder;
  write_text(folder.path() / "a/train.txt", letters(40));
  write_text(folder.path() / "a/valid.txt", "valid!");
  const auto with_valid = open_bytes(folder.path() / "a", 4);
  EXPECT_EQ(predicted(*with_valid, Split::train), letters(40).substr(1, 36));
  EXPECT_EQ(predicted(*with_valid, Split::test), "alid!");
  EXPECT_TRUE(with_valid->description().notes.empty());

  write_text(folder.path() / "a/test.txt", "test!");
  const auto with_test = open_bytes(folder.path() / "a", 4);
  EXPECT_EQ(predicted(*with_test, Split::test), "est!");
  ASSERT_EQ(with_test->description().notes.size(), 1U);
  expect_has(with_test->description().notes[0], "1 .txt file beside train.txt and");

  write_text(folder.path() / "b/train/1.txt", letters(20));
  write_text(folder.path() / "b/train/2.txt", letters(20));
  write_text(folder.path() / "b/test/1.txt", "test!");
  const auto with_folders = open_bytes(folder.path() / "b", 4);
  EXPECT_EQ(with_folders->description().text.train_bytes, 40);
  EXPECT_EQ(predicted(*with_folders, Split::test), "est!");
  EXPECT_NE(with_folders->description().fingerprint, with_test->description().fingerprint);
}

TEST(TextDataset, ManyFilesAreReadAsOneText) {
  const TestFolder folder;
  std::string text;
  for (int i = 0; i < 2500; ++i) {
    const std::string number = std::to_string(10'000 + i);
    write_text(folder.path() / "many" / (number + ".txt"), number);
    text += number;
  }
  const auto dataset = open_bytes(folder.path() / "many", 64);
  EXPECT_EQ(predicted(*dataset, Split::train), text.substr(1, 64 * (11'249 / 64 - 1)));
  EXPECT_EQ(predicted(*dataset, Split::test), text.substr(11'251));
}

// 256 and 257 are "ab" and "abab", 258 stands between texts.
std::unique_ptr<Tokenizer> small_tokenizer() {
  nlohmann::ordered_json json = tokenizer_json({{"a", "b"}, {"ab", "ab"}});
  json["added_tokens"] = {added_token("<|endoftext|>", 258)};
  return bpe_tokenizer(parse_tokenizer_json(json.dump(), "t.json"), "small");
}

TEST(TextDataset, TokensOfATokenizerAreKeptAndTextsEndWithTheirToken) {
  const TestFolder folder;
  write_text(folder.path() / "d/1.txt", "abx");
  write_text(folder.path() / "d/2.txt", "ababy");
  write_text(folder.path() / "d/3.txt", "ab" + std::string(12, 'z') + "\xFF");
  const auto tokenizer = small_tokenizer();
  const auto dataset = open_text((folder.path() / "d").string(), *tokenizer, 4);
  const Description& description = dataset->description();
  EXPECT_EQ(description.text.tokenizer, "small");
  EXPECT_EQ(description.text.vocabulary, 259);
  EXPECT_EQ(description.text.tokenizer_fingerprint, tokenizer->fingerprint());
  EXPECT_EQ(description.text.train_bytes, 21);
  EXPECT_EQ(description.text.train_tokens, 18);
  EXPECT_EQ(description.text.test_tokens, 3) << "two bytes and the end of their text";
  EXPECT_EQ(read_example(*dataset, 0, Split::train, 0).tokens, (std::vector<Token>{256, 'x', 258, 257}));
  EXPECT_EQ(read_example(*dataset, 0, Split::train, 1).tokens, (std::vector<Token>{'y', 258, 256, 'z'}));
  EXPECT_EQ(read_example(*dataset, 0, Split::train, 3).labels, (std::vector<Token>{'z', 'z', 'z', 'z'}));
  EXPECT_EQ(read_example(*dataset, 0, Split::test, 0).tokens, (std::vector<Token>{'z', 0xFF, 0, 0}));
  EXPECT_EQ(read_example(*dataset, 0, Split::test, 0).labels, (std::vector<Token>{0xFF, 258, kIgnoredLabel, kIgnoredLabel}));
  ASSERT_EQ(description.notes.size(), 1U);
  expect_has(description.notes[0], "1 byte of " + (folder.path() / "d").string() + " is not UTF-8; each is taken as a character");
}

TEST(TextDataset, LargeVocabulariesAreKeptToo) {
  const TestFolder folder;
  nlohmann::ordered_json json = tokenizer_json({});
  for (int id = 256; id < 70'000; ++id) json["added_tokens"].push_back(added_token("<" + std::to_string(id) + ">", id));
  const auto tokenizer = bpe_tokenizer(parse_tokenizer_json(json.dump(), "t.json"), "large");
  write_text(folder.path() / "a.txt", "<69999><65536>a<65535>" + std::string(20, 'x'));
  const auto dataset = open_text((folder.path() / "a.txt").string(), *tokenizer, 3);
  EXPECT_EQ(read_example(*dataset, 0, Split::train, 0).tokens, (std::vector<Token>{69'999, 65'536, 'a'}));
  EXPECT_EQ(read_example(*dataset, 0, Split::train, 0).labels, (std::vector<Token>{65'536, 'a', 65'535}));
}

TEST(TextDataset, TooLittleTextIsRefused) {
  const TestFolder folder;
  const auto error = [&](const std::string& text, std::int64_t length) {
    write_text(folder.path() / "a.txt", text);
    return open_error(folder.path() / "a.txt", length);
  };
  expect_has(error("", 4), "is empty: there is no text in it");
  expect_has(error("abc", 4), "has only 3 bytes: too little to set a tenth aside");
  expect_has(error(letters(15), 1), "has 1 token to test on, but at least 2 are needed");
  expect_has(error(letters(40), 36), "has 36 tokens to train on, fewer than the 36 of one example and the one that follows it");

  expect_has(error(letters(40), -1), "examples cannot have -1 tokens: give a length of 1 to 1048576");
  fs::create_directories(folder.path() / "none");
  expect_has(open_error(folder.path() / "none", 4), "has no .txt file: there is no text in it");
  write_text(folder.path() / "none/a.txt", "");
  expect_has(open_error(folder.path() / "none", 4), "has no .txt file that is not empty");
  fs::create_directory_symlink("..", folder.path() / "none/up");
  expect_has(open_error(folder.path() / "none", 4), "more than 32 folders deep");
}

TEST(TextDataset, ATextThatHasBecomeShorterIsNamed) {
  const TestFolder folder;
  write_text(folder.path() / "a.txt", letters(100));
  const auto dataset = open_bytes(folder.path() / "a.txt", 10);
  fs::resize_file(folder.path() / "a.txt", 40);
  expect_has(user_error_of([&] { read_example(*dataset, 0, Split::train, 4); }), "a.txt has become shorter since it was opened");
}

TEST(TextDataset, AnyChangeOfASmallTextChangesItsSample) {
  const TestFolder folder;
  std::string text = letters(60'000);
  const auto sample = [&] {
    write_text(folder.path() / "a.txt", text);
    return open_bytes(folder.path() / "a.txt", 10)->description().text.sample;
  };
  std::set<std::uint64_t> samples{sample()};
  for (const std::size_t at : {0U, 30'000U, 53'999U, 54'000U, 59'999U}) {
    text[at] = '!';
    samples.insert(sample());
  }
  EXPECT_EQ(samples.size(), 6U);
}

TEST(TextDataset, TellsTextsFromImages) {
  const TestFolder folder;
  write_text(folder.path() / "images/README.txt", "photographs");
  write_text(folder.path() / "images/cat/1.png", "");
  write_text(folder.path() / "text/a/1.txt", "text");
  write_cifar(folder.path() / "cifar", 2, 2);
  write_text(folder.path() / "cifar/batches.meta.txt", "a\nb\n");
  EXPECT_FALSE(is_text_data((folder.path() / "images").string()));
  EXPECT_FALSE(is_text_data((folder.path() / "cifar").string()));
  EXPECT_FALSE(is_text_data((folder.path() / "nothing").string()));
  EXPECT_TRUE(is_text_data((folder.path() / "text").string()));
  EXPECT_TRUE(is_text_data((folder.path() / "text/a/1.txt").string()));
}

TEST(TextDataset, OpensLikeAnyData) {
  const TestFolder folder;
  write_text(folder.path() / "a.txt", letters(10'000));
  const std::string path = (folder.path() / "a.txt").string();
  EXPECT_EQ(open_dataset(path, {})->description().text.length, kDefaultLength);
  EXPECT_EQ(open_dataset(path, {.text = {.length = 7}})->description().text.length, 7);
  expect_has(user_error_of([&] { open_dataset(path, {.image_size = 8}); }), "has no images that could be resized to 8x8");
}

TEST(EmbeddedText, IsTheNovel) {
  const std::shared_ptr<const TextSource> text = embedded_text();
  ASSERT_EQ(text->bytes(), 1'194'394);
  const auto at = [&](std::int64_t offset, std::size_t count) {
    std::string bytes(count, '?');
    text->read(offset, std::as_writable_bytes(std::span(bytes)));
    return bytes;
  };
  EXPECT_EQ(at(0, 39), "CHAPTER 1. Loomings.\n\nCall me Ishmael. ");
  EXPECT_EQ(at(text->bytes() - 25, 25), "ly found another orphan.\n");
  // The checksum that scripts/pack_text.py asks of its source.
  Sha256 checksum;
  const std::string whole = at(0, static_cast<std::size_t>(text->bytes()));
  checksum.add(std::as_bytes(std::span(whole)));
  EXPECT_EQ(checksum.finish(), "1d96e7e3e685534e2d60c39b8a4facc46fbc50cfb929ed4bd8ea9b70e820faae");
}

TEST(EmbeddedText, IsADataSetOfItsOwn) {
  const auto dataset = open_dataset("embedded-text", {.text = {.length = 64}});
  const Description& description = dataset->description();
  EXPECT_EQ(description.name, "embedded-text");
  EXPECT_EQ(description.kind, Kind::text);
  EXPECT_EQ(description.text.test_bytes, 119'439);
  EXPECT_EQ(description.text.train_tokens, 1'074'955);
  EXPECT_EQ(predicted(*dataset, Split::test).substr(119'438 - 8), "orphan.\n");
  EXPECT_EQ(check_text("embedded-text", [](const fs::path&, const std::string&) {}).files.files, 0);
}

TEST(CheckText, CountsWhatIsNotUtf8AndNamesWhatCannotBeUsed) {
  const TestFolder folder;
  write_text(folder.path() / "t/a.txt", "gut");
  write_text(folder.path() / "t/b.txt", "b\xF6se\xFF");
  write_text(folder.path() / "t/c/d.txt", "");
  std::vector<std::string> bad;
  const CheckedTexts checked = check_text((folder.path() / "t").string(), [&](const fs::path& file, const std::string& reason) {
    bad.push_back(file.filename().string());
    expect_has(reason, "is empty");
  });
  EXPECT_EQ(checked.files.files, 3);
  EXPECT_EQ(checked.files.bad, 1);
  EXPECT_EQ(bad, std::vector<std::string>{"d.txt"});
  EXPECT_EQ(checked.bytes, 8);
  EXPECT_EQ(checked.bad_bytes, 2);
  EXPECT_EQ(checked.with_bad_bytes, 1);
  EXPECT_EQ(checked.first_with_bad_bytes, (folder.path() / "t/b.txt").string() + " at byte 1");
}

}  // namespace
}  // namespace snug::data
