// Any bytes as a file of sentences and its reference: a score from 0 to 100 or one sentence about what is wrong, and what is
// scored against itself is perfect. The input: a byte for the tokenizer and for lowercase, and two files with a zero between
// them.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "data/text/bleu.h"
#include "fuzz/fuzz_input.h"

namespace {

using namespace snug::data;

void check_score(const std::filesystem::path& hypotheses, const std::filesystem::path& reference, const BleuRules& rules) {
  const std::vector<std::filesystem::path> references{reference};
  const BleuCounts counts = count_files(hypotheses, references, rules);
  const BleuScore bleu = bleu_of(counts, BleuSmoothing::exponential);
  // The logarithms of four precisions of 100 are off by some bits.
  if (!(bleu.score >= 0 && bleu.score <= 100 + 1e-9)) std::abort();
  if (hypotheses == reference && counts.totals[3] > 0 && std::abs(bleu.score - 100) > 1e-9) std::abort();
  for (std::size_t i = 0; i < kBleuOrder; ++i) {
    if (counts.matches[i] > counts.totals[i]) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const BleuRules rules{.tokenizer = static_cast<BleuTokenizer>(data[0] % 5), .lowercase = data[0] >= 128};
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t middle = std::min(text.find('\0'), text.size());
  const snug::fuzz::MemoryFile hypotheses(text.substr(0, middle));
  const snug::fuzz::MemoryFile reference(text.substr(std::min(middle + 1, text.size())));
  for (const snug::fuzz::MemoryFile* against : {&hypotheses, &reference}) {
    try {
      check_score(hypotheses.path(), against->path(), rules);
    } catch (const snug::UserError&) {
    }
  }
  return 0;
}
