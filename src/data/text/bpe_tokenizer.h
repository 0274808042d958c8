// Byte-level BPE as GPT-2 has it: texts are cut into words, and the bytes of each are merged.
#pragma once

#include <memory>
#include <string>

#include "data/text/bpe_files.h"
#include "data/text/tokenizer.h"

namespace snug::data {

// The text of an added token is that token wherever it stands, as in Hugging Face's `tokenizers`; what is before and after it are
// texts of their own.
std::unique_ptr<Tokenizer> bpe_tokenizer(BpeDefinition definition, std::string name);

}  // namespace snug::data
