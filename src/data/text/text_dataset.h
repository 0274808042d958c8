// Texts as examples: windows of as many tokens as a model reads at once, each with the tokens that follow as labels.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/dataset.h"
#include "data/text/tokenizer.h"

namespace snug::data {

// Whether open_text() is for this data: embedded-text, a file, or a folder that has .txt files but no images or CIFAR-10 batches.
bool is_text_data(const std::string& spec);

// `spec` is embedded-text, a file, or a folder: all .txt files in it and in the folders in it, in the order of their paths. Of a
// folder that has train.txt (or a folder `train` of .txt files) and test.txt or valid.txt (or such folders) these are the two
// sides; otherwise the last tenth of the bytes is for testing.
//
// The inputs are "tokens" i32[length] and "labels" i32[length], the token after each. Windows follow each other without overlap.
// In training they begin at another token in every epoch (read_in_epoch), so that all but the last few of the text are seen; a
// text of few windows has too few to shift them. In testing the last window may be short: its remaining rows have the label
// kIgnoredLabel.
//
// Resident memory does not grow with the text: its bytes are read where they lie, and other tokens are written once into an
// unnamed temporary file.
//
// UserError where there is no text or too little for one example.
std::unique_ptr<Dataset> open_text(const std::string& spec, const Tokenizer& tokenizer, std::int64_t length);
std::unique_ptr<Dataset> open_text(const std::string& spec, const TextOptions& options);

// The tokens of all texts of `spec`, for training or testing alike, one text after the other and nothing between them.
void encode_texts(const std::string& spec, const Tokenizer& tokenizer, const TakeTokens& take);

// Reads every text. Bad are files that are empty or cannot be read; bytes that are not UTF-8 are only counted, since every
// tokenizer takes them.
struct CheckedTexts {
  CheckedFiles files;
  std::int64_t bytes = 0;
  std::int64_t bad_bytes = 0;        // that are not UTF-8
  std::int64_t with_bad_bytes = 0;   // files that have such
  std::string first_with_bad_bytes;  // the first of them
};
CheckedTexts check_text(const std::string& spec, const BadFileCallback& use);

}  // namespace snug::data
