// A safetensors file taken apart, to be changed and put together again.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "files.h"
#include "train/safetensors.h"

namespace snug::train {

struct LooseTensor {
  TensorInfo info;
  std::string bytes;
};

inline std::vector<LooseTensor> take_apart(const std::filesystem::path& path) {
  const SafetensorsReader reader(path);
  std::vector<LooseTensor> loose;
  for (const TensorInfo& info : reader.header().tensors) {
    loose.push_back({info, std::string(static_cast<std::size_t>(info.bytes), '\0')});
    reader.read(info, std::as_writable_bytes(std::span(loose.back().bytes)));
  }
  return loose;
}

inline void put_together(const std::filesystem::path& path, const std::vector<LooseTensor>& loose) {
  std::vector<TensorInfo> infos;
  for (const LooseTensor& tensor : loose) infos.push_back(tensor.info);
  std::string bytes = make_safetensors_header(infos, {});
  for (const LooseTensor& tensor : loose) bytes += tensor.bytes;
  write_bytes(path, bytes);
}

}  // namespace snug::train
