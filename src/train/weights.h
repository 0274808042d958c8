// Weights in and out as safetensors: parameters and running statistics, named and laid out like PyTorch's, or as
// io/published_weights.h says. What else someone needs who uses them stands in the file's metadata, as texts, which every reader
// of the format passes over:
//
//   {"__metadata__": {"format": "pt", "model": "small-cnn",
//                     "snug.classes": "[\"cat\",\"dog\"]",       what each output of the classifier is called
//                     "snug.image_size": "32",                   images are squares of this side, ...
//                     "snug.mean": "[125.3,123.0,113.9]",        ... and each channel of 0..255, R, G, B, less its mean,
//                     "snug.std": "[63.0,62.1,66.7]",            over its standard deviation, is what the network is given
//                     "snug.names": "transformers"}, ...}        of language models: whose names and orders the tensors have
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "data/dataset.h"
#include "train/session.h"

namespace snug::train {

// The entries snug.* above. A class whose name is not UTF-8, which JSON is, has U+FFFD where it is not.
std::map<std::string, std::string> weights_metadata(const data::Description& trained_on);

// Parameters and running statistics in logical order (O,I,H,W) and their own types; `metadata` goes with those of the program.
void export_weights(const std::filesystem::path& path, const Session& session,
                    const std::map<std::string, std::string>& metadata = {});

// Other states in the same way: what belongs to a parameter, such as its momentum, by the parameter's name.
void export_states(const std::filesystem::path& path, const Session& session, std::span<const StateId> states);

// How names in a file are mapped to those of the model.
struct ImportOptions {
  std::string prefix;       // what every name in the file begins with and the model's do not: "model."
  bool partial = false;     // the file may lack tensors and may have others
  bool strict = false;      // its classifier must have the model's number of classes
  bool names_flags = true;  // refusals name the flags of training that would make of these options others
};

// From a safetensors file, an index of several or a folder with either (weights_file.h), a piece at a time. Every parameter and
// running statistic must be there with its shape, as F64, F32, F16 or BF16; PyTorch's `num_batches_tracked`, other buffers and
// all metadata are skipped. Only a language model's file that Snug wrote without "snug.names" has Snug's own names and orders; of
// any other the names may lack what those of its inner model lack ("transformer."). UserError naming the first that is missing,
// unknown or of another shape, how many more there are, and the remedy; the session is then unchanged. What the file does not
// give keeps its initial value; a session that begins with a file (Start::from_file) draws only that.
//
// One difference is accepted: where only the file's classifier has another number of classes, the classifier keeps the session's
// values (initial values in a new session), for fine-tuning on other data.
//
// The result says in a sentence what did not come from the file, and how much did where `partial` was asked for; otherwise it is
// empty.
std::string import_weights(const std::filesystem::path& path, Session& session, const ImportOptions& options = {});

}  // namespace snug::train
