// Weights as they are published: one safetensors file, or several beside an index that says which tensor is in which, as Hugging
// Face shards large models:
//
//   {"metadata": {"total_size": 13476831232},
//    "weight_map": {"lm_head.weight": "model-00002-of-00002.safetensors", ...}}
//
// All headers are checked before any tensor is read; then tensors are read in pieces of any size.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors.h"

namespace snug::io {

struct IndexedTensor {
  std::string name;
  std::string file;  // a plain name, to be found beside the index
};
// An index's weight_map in its order; the rest of it repeats what the files say. UserError with one sentence, naming `source`,
// when the text is not an index, has a tensor twice, or names a file elsewhere.
std::vector<IndexedTensor> parse_weights_index(std::string_view text, std::string_view source);

class WeightsFile {
 public:
  // `path` is a safetensors file, an index (*.json) or a folder with model.safetensors or model.safetensors.index.json. UserError
  // when any of the files is wrong or missing, or does not hold exactly its tensors by the index.
  explicit WeightsFile(const std::filesystem::path& path);

  // What was opened, in quotes: the file or the index.
  const std::string& source() const { return source_; }
  // The tensors of all files, grouped by file (TensorInfo::file). For a single file also its metadata.
  const SafetensorsHeader& header() const { return header_; }
  // Fills `target` with the tensor's bytes from `begin` on.
  void read(const TensorInfo& tensor, std::uint64_t begin, std::span<std::byte> target) const;

 private:
  void add_shards(const std::filesystem::path& index);

  std::string source_;
  std::vector<std::filesystem::path> files_;
  SafetensorsHeader header_;
  // Of hundreds of files, one is open at a time.
  mutable std::optional<InputFile> open_;
  mutable std::size_t open_file_ = 0;
};

}  // namespace snug::io
