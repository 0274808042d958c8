#include "data/text/bleu.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/counted.h"
#include "base/error.h"
#include "data/text/text_lines.h"
#include "data/text/utf8.h"

namespace snug::data {

namespace {

// Words with a space between them, and where each begins. An n-gram is then a part of the text, and no other n-gram is the same
// part.
class Words {
 public:
  explicit Words(std::u32string text) : text_(std::move(text)) {
    if (text_.empty()) return;
    begins_.push_back(0);
    for (std::size_t at = 0; (at = text_.find(U' ', at)) != std::u32string::npos;) begins_.push_back(++at);
  }

  std::size_t count() const { return begins_.size(); }
  std::size_t ngrams(std::size_t order) const { return count() < order ? 0 : count() - order + 1; }
  std::u32string_view ngram(std::size_t first, std::size_t order) const {
    const std::size_t after = first + order;
    const std::size_t end = after < count() ? begins_[after] - 1 : text_.size();
    return std::u32string_view(text_).substr(begins_[first], end - begins_[first]);
  }

 private:
  std::u32string text_;
  std::vector<std::size_t> begins_;
};

using NgramCounts = std::unordered_map<std::u32string_view, std::int64_t>;

NgramCounts count_ngrams(const Words& words, std::size_t order) {
  NgramCounts counts;
  for (std::size_t i = 0; i < words.ngrams(order); ++i) ++counts[words.ngram(i, order)];
  return counts;
}

std::int64_t matches_of(const Words& hypothesis, std::span<const Words> references, std::size_t order) {
  NgramCounts most;
  for (const Words& reference : references) {
    for (const auto& [ngram, count] : count_ngrams(reference, order)) {
      std::int64_t& known = most[ngram];
      known = std::max(known, count);
    }
  }
  std::int64_t matches = 0;
  for (const auto& [ngram, count] : count_ngrams(hypothesis, order)) {
    const auto found = most.find(ngram);
    if (found != most.end()) matches += std::min(count, found->second);
  }
  return matches;
}

// The nearest to that of the hypothesis; the shorter of two.
std::size_t nearest_length(std::size_t length, std::span<const Words> references) {
  const auto distance = [&](std::size_t other) { return other < length ? length - other : other - length; };
  std::size_t nearest = references.front().count();
  for (const Words& reference : references) {
    const std::size_t count = reference.count();
    if (distance(count) < distance(nearest) || (distance(count) == distance(nearest) && count < nearest)) nearest = count;
  }
  return nearest;
}

// The logarithm of an order without a match: a score with it is 0, in double.
constexpr double kLogOfNothing = -9999999999;

std::u32string decode_line(std::string_view line, const TextLines& file) {
  std::optional<std::u32string> decoded = decode_utf8(line);
  if (!decoded) throw_user_error("line {} of {} is not UTF-8; scores are of characters", file.lines(), file.source());
  return *std::move(decoded);
}

// Reads them all, to say how many there are.
void refuse_other_count(TextLines& hypotheses, TextLines& reference) {
  while (hypotheses.next()) {
  }
  while (reference.next()) {
  }
  throw_user_error("{} has {} and {} has {}; a reference has a line for each hypothesis", hypotheses.source(),
                   counted(hypotheses.lines(), "line"), reference.source(), counted(reference.lines(), "line"));
}

}  // namespace

BleuScore bleu_of(const BleuCounts& counts, BleuSmoothing smoothing) {
  BleuScore result;
  const auto words = static_cast<double>(counts.hypothesis_words);
  const auto wanted = static_cast<double>(counts.reference_words);
  if (counts.reference_words > 0) result.ratio = words / wanted;
  if (words < wanted) result.brevity_penalty = words > 0 ? std::exp(1 - wanted / words) : 0;
  if (std::ranges::all_of(counts.matches, [](std::int64_t matches) { return matches == 0; })) return result;
  double assumed = 1;
  for (std::size_t i = 0; i < kBleuOrder && counts.totals[i] > 0; ++i) {
    const auto total = static_cast<double>(counts.totals[i]);
    if (counts.matches[i] > 0) {
      result.precisions[i] = 100 * static_cast<double>(counts.matches[i]) / total;
    } else if (smoothing == BleuSmoothing::exponential) {
      assumed *= 2;
      result.precisions[i] = 100 / (assumed * total);
    }
  }
  double logarithms = 0;
  for (const double precision : result.precisions) logarithms += precision > 0 ? std::log(precision) : kLogOfNothing;
  result.score = result.brevity_penalty * std::exp(logarithms / static_cast<double>(kBleuOrder));
  return result;
}

void add_sentence(BleuCounts& counts, std::u32string_view hypothesis, std::span<const std::u32string_view> references,
                  const BleuRules& rules) {
  SNUG_CHECK(!references.empty(), "a sentence has no reference");
  const Words words(bleu_words(hypothesis, rules.tokenizer, rules.lowercase));
  std::vector<Words> wanted;
  for (const std::u32string_view reference : references)
    wanted.emplace_back(bleu_words(reference, rules.tokenizer, rules.lowercase));
  ++counts.sentences;
  counts.hypothesis_words += static_cast<std::int64_t>(words.count());
  counts.reference_words += static_cast<std::int64_t>(nearest_length(words.count(), wanted));
  for (std::size_t i = 0; i < kBleuOrder; ++i) {
    counts.totals[i] += static_cast<std::int64_t>(words.ngrams(i + 1));
    counts.matches[i] += matches_of(words, wanted, i + 1);
  }
}

BleuCounts count_files(const std::filesystem::path& hypotheses, std::span<const std::filesystem::path> references,
                       const BleuRules& rules) {
  SNUG_CHECK(!references.empty(), "no file of references is given");
  TextLines lines(hypotheses);
  std::deque<TextLines> reference_lines;
  for (const std::filesystem::path& path : references) reference_lines.emplace_back(path);
  BleuCounts counts;
  for (;;) {
    const std::optional<std::string_view> line = lines.next();
    std::vector<std::u32string> sentences;
    for (TextLines& of_reference : reference_lines) {
      const std::optional<std::string_view> reference = of_reference.next();
      if (reference.has_value() != line.has_value()) refuse_other_count(lines, of_reference);
      if (reference) sentences.push_back(decode_line(*reference, of_reference));
    }
    if (!line) break;
    const std::vector<std::u32string_view> wanted(sentences.begin(), sentences.end());
    add_sentence(counts, decode_line(*line, lines), wanted, rules);
  }
  if (counts.sentences == 0) throw_user_error("{} is empty; give a file with a sentence on each line", lines.source());
  return counts;
}

}  // namespace snug::data
