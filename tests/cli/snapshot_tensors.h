// What a run of the command left in its last snapshot.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "io/safetensors.h"
#include "train/snapshot.h"

namespace snug::cli {

// Every tensor by name: weights, momenta, statistics. Nothing when there is no snapshot.
inline std::map<std::string, std::vector<std::byte>> tensors_of(const std::filesystem::path& run) {
  const auto found = train::find_latest_good(run);
  if (!found.snapshot) return {};
  const io::SafetensorsReader reader(found.snapshot->path);
  std::map<std::string, std::vector<std::byte>> tensors;
  for (const io::TensorInfo& tensor : found.snapshot->tensors) {
    std::vector<std::byte>& bytes = tensors[tensor.name];
    bytes.resize(tensor.bytes);
    reader.read(tensor, bytes);
  }
  return tensors;
}

}  // namespace snug::cli
