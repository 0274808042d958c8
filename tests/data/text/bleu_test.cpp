// The expected scores of BleuOfSentences are those of sacrebleu's own tests (test/test_bleu.py at version 2.6.0); the others were
// computed with that version on Python 3.11.
#include "data/text/bleu.h"

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "data/text/text_lines.h"
#include "data/text/utf8.h"
#include "support/messages.h"
#include "support/temporary_folder.h"

namespace snug::data {
namespace {

using support::mentions;
using support::message_of;
using support::TemporaryFolder;
using Sentences = std::vector<std::u32string>;

constexpr BleuSmoothing kExponential = BleuSmoothing::exponential;

// `references` lists the sentences of one translator after those of another.
BleuCounts counts_of(const Sentences& hypotheses, const std::vector<Sentences>& references, const BleuRules& rules = {}) {
  BleuCounts counts;
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    std::vector<std::u32string_view> wanted;
    for (const Sentences& translator : references) wanted.emplace_back(translator[i]);
    add_sentence(counts, hypotheses[i], wanted, rules);
  }
  return counts;
}

double score_of(const Sentences& hypotheses, const std::vector<Sentences>& references, const BleuRules& rules = {},
                BleuSmoothing smoothing = kExponential) {
  return bleu_of(counts_of(hypotheses, references, rules), smoothing).score;
}

const Sentences kHypotheses{U"The dog bit the man.", U"It wasn't surprising.", U"The man had just bitten him."};
const std::vector<Sentences> kReferences{{U"The dog bit the man.", U"It was not unexpected.", U"The man bit him first."},
                                         {U"The dog had bit the man.", U"No one was surprised.", U"The man had bitten the dog."}};

TEST(BleuOfSentences, IsThatOfSacrebleusTests) {
  EXPECT_NEAR(score_of(kHypotheses, kReferences), 48.530827, 1e-6);
  EXPECT_NEAR(score_of(kHypotheses, kReferences, {.tokenizer = BleuTokenizer::none}), 49.1919566, 1e-6);
  EXPECT_NEAR(score_of(kHypotheses, kReferences, {.tokenizer = BleuTokenizer::international}), 43.91623493, 1e-6);
  EXPECT_NEAR(score_of(kHypotheses, kReferences, {}, BleuSmoothing::none), 48.530827, 1e-6);
  EXPECT_EQ(score_of({U"", U"", U""}, kReferences), 0);
  const Sentences one{U"this is a test"};
  EXPECT_NEAR(score_of(one, {one}), 100, 1e-9);
}

TEST(BleuOfSentences, CountsAreThoseOfSacrebleusTests) {
  const BleuCounts counts = counts_of({U"am I am a character sequence"}, {{U"I am a symbol string sequence a a"}});
  EXPECT_EQ(
      counts,
      (BleuCounts{.sentences = 1, .hypothesis_words = 6, .reference_words = 8, .matches = {4, 2, 1, 0}, .totals = {6, 5, 4, 3}}));
  const BleuScore bleu =
      bleu_of({.sentences = 1, .hypothesis_words = 11, .reference_words = 11, .matches = {9, 7, 5, 3}, .totals = {10, 8, 6, 4}},
              BleuSmoothing::none);
  EXPECT_NEAR(bleu.score, 83.75922397, 1e-8);
}

TEST(BleuOfSentences, EveryTokenizerScoresAsSacrebleuDoes) {
  const Sentences hypotheses{U"The 3-year plan costs $1,000.50.", U"&quot;Yes&quot;, he said.", U"ΟΔΟΣ II"};
  const std::vector<Sentences> references{{U"The 3-year plan cost $1,000.50!", U"\"Yes\", she said.", U"οδος ii"}};
  const auto score = [&](BleuTokenizer tokenizer, bool lowercase = false) {
    return score_of(hypotheses, references, {.tokenizer = tokenizer, .lowercase = lowercase});
  };
  EXPECT_NEAR(score(BleuTokenizer::mteval_13a), 48.24285792351193, 1e-12);
  EXPECT_NEAR(score(BleuTokenizer::mteval_13a, true), 51.33450480401707, 1e-12);
  EXPECT_NEAR(score(BleuTokenizer::characters), 57.004643844499654, 1e-12);
  EXPECT_NEAR(score(BleuTokenizer::none), 29.071536848410968, 1e-12);
  EXPECT_NEAR(score(BleuTokenizer::international), 25.25798557471401, 1e-12);
}

TEST(BleuScores, OrdersWithoutAMatchAreSmoothedInTurn) {
  const BleuCounts counts = counts_of({U"a b c d"}, {{U"a x c y"}});
  const BleuScore smoothed = bleu_of(counts, kExponential);
  EXPECT_EQ(smoothed.precisions, (std::array{50.0, 100 / (2 * 3.0), 100 / (4 * 2.0), 100 / (8 * 1.0)}));
  EXPECT_NEAR(smoothed.score, 18.99589214128981, 1e-12);
  const BleuScore plain = bleu_of(counts, BleuSmoothing::none);
  EXPECT_EQ(plain.precisions, (std::array{50.0, 0.0, 0.0, 0.0}));
  EXPECT_EQ(plain.score, 0);
}

TEST(BleuScores, SentencesTooShortForFourWordsScoreNothing) {
  const BleuScore bleu = bleu_of(counts_of({U"a b c"}, {{U"a b c"}}), kExponential);
  EXPECT_EQ(bleu.precisions, (std::array{100.0, 100.0, 100.0, 0.0}));
  EXPECT_EQ(bleu.score, 0);
}

TEST(BleuScores, ShortTranslationsArePenalized) {
  const BleuScore bleu = bleu_of(counts_of({U"a b c d"}, {{U"a b c d e"}}), kExponential);
  EXPECT_EQ(bleu.ratio, 0.8);
  EXPECT_EQ(bleu.brevity_penalty, std::exp(1 - 5 / 4.0));
  EXPECT_NEAR(bleu.score, bleu.brevity_penalty * 100, 1e-12);
  EXPECT_EQ(bleu_of(counts_of({U""}, {{U"a"}}), kExponential).brevity_penalty, 0);
  EXPECT_EQ(bleu_of(counts_of({U"a b"}, {{U""}}), kExponential).ratio, 0);
}

TEST(BleuScores, OfSeveralReferencesTheNearestLengthAndTheMostMatchesCount) {
  const BleuCounts counts = counts_of({U"a a b"}, {{U"a"}, {U"a b b b b"}, {U"b a a c d e"}});
  EXPECT_EQ(counts.reference_words, 1) << "as near as five, and shorter";
  EXPECT_EQ(counts.matches, (std::array<std::int64_t, 4>{3, 2, 0, 0}));
}

std::u32string words(std::u32string_view sentence, BleuTokenizer tokenizer = BleuTokenizer::mteval_13a, bool lowercase = false) {
  return bleu_words(sentence, tokenizer, lowercase);
}

TEST(BleuWords, Mteval13aCutsPunctuationOffButInNumbers) {
  EXPECT_EQ(words(U"It costs $1,000.50 (about 3-4% more), doesn't it?"),
            U"It costs $ 1,000.50 ( about 3 - 4 % more ) , doesn't it ?");
  EXPECT_EQ(words(U"a.b, .5 5. ,.x 1.,2"), U"a . b , . 5 5 . , . x 1 . , 2");
  EXPECT_EQ(words(U"Ünï–code „Ja“."), U"Ünï–code „Ja“ .") << "only ASCII's";
}

TEST(BleuWords, Mteval13aResolvesEntitiesAndJoinsLines) {
  EXPECT_EQ(words(U"He said &quot;R&amp;D&quot; is &lt;b&gt; &amp;lt;"), U"He said \" R & D \" is < b > <");
  EXPECT_EQ(words(U"well-\nknown <skipped>\nwords"), U"wellknown words");
}

TEST(BleuWords, InternationalRulesKnowAllPunctuationAndNumbers) {
  constexpr BleuTokenizer kIntl = BleuTokenizer::international;
  EXPECT_EQ(words(U"Für 1.000,50 € – „Ja“, 2020.", kIntl), U"Für 1.000,50 € – „ Ja “ , 2020.");
  EXPECT_EQ(words(U"a.b 5.x ٣.٤ x.٤", kIntl), U"a . b 5 . x ٣.٤ x . ٤");
  EXPECT_EQ(words(U"½,¾", kIntl), U"½,¾");
}

TEST(BleuWords, SpacesAreThoseOfUnicodeButForMultiBleu) {
  const std::u32string_view text = U"\u00A01\u30002\x1F 3\t4 \r";
  EXPECT_EQ(words(text, BleuTokenizer::none), U"1 2 3 4");
  EXPECT_EQ(words(text, BleuTokenizer::characters), U"1 2 3 4");
  EXPECT_EQ(words(text, BleuTokenizer::multi_bleu), U"\u00A01\u30002\x1F 3 4");
  EXPECT_EQ(words(U"", BleuTokenizer::none), U"");
  EXPECT_EQ(words(U" \t", BleuTokenizer::mteval_13a), U"");
}

TEST(BleuWords, LowercaseIsThatOfUnicodeButForMultiBleu) {
  EXPECT_EQ(words(U"ÄΣ ΑΣ Σ ΑΣ' ΑΣ'Α İ Ǆ 𐐀", BleuTokenizer::none, true), U"äς ας σ ας' ασ'α i\u0307 ǆ 𐐨");
  EXPECT_EQ(words(U"ÄZ", BleuTokenizer::multi_bleu, true), U"Äz");
}

// --- Files ---

void write(const std::filesystem::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

TEST(BleuOfFiles, IsThatOfTheirLines) {
  const TemporaryFolder folder;
  write(folder / "h", "The dog bit the man.\nIt wasn't surprising.\r\nThe man had just bitten him.");
  write(folder / "a", "The dog bit the man.\nIt was not unexpected.\nThe man bit him first.\n");
  write(folder / "b", "The dog had bit the man.\nNo one was surprised.\nThe man had bitten the dog.\n");
  const std::vector<std::filesystem::path> references{folder / "a", folder / "b"};
  EXPECT_EQ(count_files(folder / "h", references, {}), counts_of(kHypotheses, kReferences));
}

TEST(BleuOfFiles, EmptyLinesAreSentencesWithoutWords) {
  const TemporaryFolder folder;
  write(folder / "h", "\na b c d\n");
  write(folder / "r", "x y\n\n");
  const std::vector<std::filesystem::path> references{folder / "r"};
  EXPECT_EQ(count_files(folder / "h", references, {}),
            (BleuCounts{.sentences = 2, .hypothesis_words = 4, .reference_words = 2, .matches = {}, .totals = {4, 3, 2, 1}}));
}

TEST(BleuOfFiles, RefusesWhatDoesNotGoTogether) {
  const TemporaryFolder folder;
  write(folder / "h", "one\ntwo\nthree\n");
  write(folder / "shorter", "one\n");
  write(folder / "same", "1\n2\n3\n");
  write(folder / "bad", "one\ntwo \xFF\nthree\n");
  write(folder / "empty", "");
  const auto refused = [&](const char* hypotheses, std::vector<std::filesystem::path> references) {
    for (std::filesystem::path& path : references) path = folder / path;
    return message_of<UserError>([&] { count_files(folder / hypotheses, references, {}); });
  };
  EXPECT_TRUE(mentions(refused("h", {"same", "shorter"}), {"h'", "3 lines", "shorter'", "1 line;"}));
  EXPECT_TRUE(mentions(refused("shorter", {"h"}), {"shorter'", "1 line ", "h'", "3 lines"}));
  EXPECT_TRUE(mentions(refused("h", {"bad"}), {"line 2", "bad'"}));
  EXPECT_TRUE(mentions(refused("bad", {"h"}), {"line 2", "bad'"}));
  EXPECT_TRUE(mentions(refused("empty", {"empty"}), {"empty'"}));
  EXPECT_TRUE(mentions(refused("h", {"nothing"}), {"nothing"}));
  EXPECT_TRUE(mentions(refused("h", {""}), {folder.path().string()}));
}

TEST(TextLines, AreTheSameWhereverTheFileIsCut) {
  const TemporaryFolder folder;
  std::vector<std::string> written{"", std::string(300'000, 'x'), "a", "", std::string(600'000, 'y'), "end"};
  for (const bool ends : {false, true}) {
    std::string text;
    for (const std::string& line : written) text += line + '\n';
    if (!ends) text.pop_back();
    write(folder / "t", text);
    TextLines lines(folder / "t");
    std::vector<std::string> read;
    while (const auto line = lines.next()) read.emplace_back(*line);
    EXPECT_EQ(read, written);
    EXPECT_EQ(lines.lines(), 6);
  }
}

TEST(TextLines, OfNoEndAreRefused) {
  const TemporaryFolder folder;
  write(folder / "t", "a\n" + std::string(TextLines::kLongestLine, 'x') + "\n" + std::string(TextLines::kLongestLine + 1, 'x'));
  TextLines lines(folder / "t");
  EXPECT_EQ(lines.next()->size(), 1U);
  EXPECT_EQ(lines.next()->size(), TextLines::kLongestLine);
  EXPECT_TRUE(mentions(message_of<UserError>([&] { lines.next(); }), {"line 3", "16000000"}));
}

}  // namespace
}  // namespace snug::data
