// Files of tokenizers: refused with a UserError, or a tokenizer whose tokens are the text's, however it is cut into pieces. The
// input is a tokenizer.json, or a vocab.json, a NUL and a merges.txt.
#include <span>

#include <nlohmann/json.hpp>

#include "data/text/bpe_alphabet.h"
#include "data/text/bpe_tokenizer.h"
#include "fuzz_input.h"
#include <snug/error.h>

namespace {

using namespace snug::data;

std::string vocabulary() {
  nlohmann::ordered_json vocab;
  for (int byte = 0; byte < 256; ++byte) vocab[spell_bytes(std::string(1, static_cast<char>(byte)))] = byte;
  vocab["ab"] = 256;
  vocab["abab"] = 257;
  vocab["<|endoftext|>"] = 258;
  return vocab.dump();
}

// What is there but for the 256 bytes comes last: a mutation there leaves the file what it is.
std::string tokenizer_json() {
  const std::string vocab = vocabulary();
  return R"({"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"use_regex":true},"model":{"type":"BPE","vocab":)" +
         vocab +
         R"(,"merges":["a b",["ab","ab"]]},"normalizer":null,"added_tokens":[{"id":258,"content":"<|endoftext|>","lstrip":false}]})";
}

void check(BpeDefinition definition) {
  const auto tokenizer = bpe_tokenizer(std::move(definition), "fuzz");
  const std::string text = "ababab abx<|endoftext|>ab \n\xC3\xA9\xFF<|end";
  const std::vector<Token> tokens = tokenizer->encode(text);
  if (tokenizer->decode(tokens) != text) std::abort();
  std::vector<Token> again;
  const TakeTokens take = [&](std::span<const Token> more) { again.insert(again.end(), more.begin(), more.end()); };
  const auto encoder = tokenizer->encoder();
  for (const char& c : text) encoder->feed({&c, 1}, take);
  encoder->finish(take);
  if (again != tokens) std::abort();
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed) {
  static const std::string first = tokenizer_json();
  static const std::string second = vocabulary() + '\0' + "#version: 0.2\na b\nab ab\n";
  return snug::fuzz::mutate_from(seed % 2 == 0 ? first : second, data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = snug::fuzz::text_of(data, size);
  const std::size_t end = text.find('\0');
  try {
    if (end == std::string_view::npos) {
      check(parse_tokenizer_json(text, "tokenizer.json"));
    } else {
      check(parse_vocab_and_merges(text.substr(0, end), "vocab.json", text.substr(end + 1), "merges.txt"));
    }
  } catch (const snug::UserError&) {
  }
  return 0;
}
