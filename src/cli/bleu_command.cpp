// How near translations are to reference translations.
#include <array>
#include <filesystem>
#include <string_view>
#include <vector>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "data/text/bleu.h"
#include <snug/version.h>

namespace snug::cli {

namespace {

struct NamedTokenizer {
  std::string_view name;
  data::BleuTokenizer tokenizer;
};
constexpr std::array<NamedTokenizer, 4> kTokenizers{{{"13a", data::BleuTokenizer::mteval_13a},
                                                     {"intl", data::BleuTokenizer::international},
                                                     {"char", data::BleuTokenizer::characters},
                                                     {"none", data::BleuTokenizer::none}}};

struct Scoring {
  data::BleuRules rules;
  data::BleuSmoothing smoothing = data::BleuSmoothing::exponential;
  std::string_view tokenizer_name = "13a";
};

Scoring scoring_of(const Flags& flags) {
  Scoring scoring;
  scoring.rules.lowercase = flags.lowercase;
  if (flags.multi_bleu) {
    if (flags.tokenize) throw UserError("--multi-bleu takes words as they are; leave out --tokenize");
    scoring.rules.tokenizer = data::BleuTokenizer::multi_bleu;
    scoring.smoothing = data::BleuSmoothing::none;
    scoring.tokenizer_name = "multi-bleu";
  } else if (flags.tokenize) {
    const auto* const found = std::ranges::find(kTokenizers, *flags.tokenize, &NamedTokenizer::name);
    if (found == kTokenizers.end()) throw_user_error("--tokenize is '{}'; it can be 13a, intl, char, none", *flags.tokenize);
    scoring.rules.tokenizer = found->tokenizer;
    scoring.tokenizer_name = found->name;
  }
  return scoring;
}

// How the score came about, as sacrebleu writes it, so that scores can be compared.
std::string signature_of(const Scoring& scoring, std::size_t references) {
  return fmt::format("nrefs:{}|case:{}|eff:no|tok:{}|smooth:{}|version:snug-{}", references,
                     scoring.rules.lowercase ? "lc" : "mixed", scoring.tokenizer_name,
                     scoring.smoothing == data::BleuSmoothing::exponential ? "exp" : "none", kVersion);
}

}  // namespace

void run_bleu(const Flags& flags) {
  if (flags.hypotheses.empty() || flags.references.empty()) {
    throw UserError(
        "'snug bleu' needs a file and its references, as in 'snug bleu translated.txt --reference reference.txt' "
        "(see 'snug bleu --help')");
  }
  const Scoring scoring = scoring_of(flags);
  const std::vector<std::filesystem::path> references(flags.references.begin(), flags.references.end());
  const data::BleuCounts counts = data::count_files(flags.hypotheses, references, scoring.rules);
  const data::BleuScore bleu = data::bleu_of(counts, scoring.smoothing);
  const std::string signature = signature_of(scoring, references.size());
  if (flags.json) {
    return write_json({{"file", flags.hypotheses},
                       {"references", flags.references},
                       {"bleu", bleu.score},
                       {"precisions", bleu.precisions},
                       {"brevity_penalty", bleu.brevity_penalty},
                       {"ratio", bleu.ratio},
                       {"hypothesis_words", counts.hypothesis_words},
                       {"reference_words", counts.reference_words},
                       {"matches", counts.matches},
                       {"totals", counts.totals},
                       {"sentences", counts.sentences},
                       {"signature", signature}});
  }
  const std::string precisions = fmt::format("{:.1f}", fmt::join(bleu.precisions, "/"));
  if (flags.multi_bleu) {
    return write_out(fmt::format("BLEU = {:.2f}, {} (BP={:.3f}, ratio={:.3f}, hyp_len={}, ref_len={})\n", bleu.score, precisions,
                                 bleu.brevity_penalty, bleu.ratio, counts.hypothesis_words, counts.reference_words));
  }
  write_out(fmt::format("BLEU|{} = {:.2f} {} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})\n", signature, bleu.score,
                        precisions, bleu.brevity_penalty, bleu.ratio, counts.hypothesis_words, counts.reference_words));
}

}  // namespace snug::cli
