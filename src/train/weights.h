// Weights in and out as safetensors: parameters and running statistics, named like PyTorch's.
#pragma once

#include <filesystem>

#include "train/session.h"

namespace snug::train {

// Parameters and running statistics in logical order (O,I,H,W) and their own types.
void export_weights(const std::filesystem::path& path, const Session& session);

// How names in a file are mapped to those of the model.
struct ImportOptions {
  std::string prefix;    // what every name in the file begins with and the model's do not: "model."
  bool partial = false;  // the file may lack tensors and may have others
};

// From a safetensors file, an index of several or a folder with either (weights_file.h), a piece at a time. Every parameter and
// running statistic must be there with its shape, as F64, F32, F16 or BF16; PyTorch's `num_batches_tracked` is skipped. UserError
// naming the first that is missing, unknown or of another shape, how many more there are, and the remedy; the session is then
// unchanged. What the file does not give keeps its initial value; a session that begins with a file (Start::from_file) draws only
// that.
//
// One difference is accepted: where only the file's classifier has another number of classes, the classifier keeps the session's
// values (initial values in a new session), for fine-tuning on other data.
//
// The result says in a sentence what did not come from the file, and how much did where `partial` was asked for; otherwise it is
// empty.
std::string import_weights(const std::filesystem::path& path, Session& session, const ImportOptions& options = {});

}  // namespace snug::train
