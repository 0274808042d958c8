// What a language model has learned, at the end of its training.
#pragma once

#include <string>

namespace snug::cli {

// Prints some lines that the run's model writes. A model whose numbers are out of range, or whose tokenizer has gone, gets a
// note: its training is done and saved.
void write_sample(const std::string& folder);

}  // namespace snug::cli
