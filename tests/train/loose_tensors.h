// A safetensors file taken apart, to be changed and put together again.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/safetensors.h"
#include "support/files.h"

namespace snug::train {

using support::write_bytes;

struct LooseTensor {
  io::TensorInfo info;
  std::string bytes;
};

inline std::vector<LooseTensor> take_apart(const std::filesystem::path& path) {
  const io::SafetensorsReader reader(path);
  std::vector<LooseTensor> loose;
  for (const io::TensorInfo& info : reader.header().tensors) {
    loose.push_back({info, std::string(static_cast<std::size_t>(info.bytes), '\0')});
    reader.read(info, std::as_writable_bytes(std::span(loose.back().bytes)));
  }
  return loose;
}

inline void put_together(const std::filesystem::path& path, const std::vector<LooseTensor>& loose) {
  std::vector<io::TensorInfo> infos;
  for (const LooseTensor& tensor : loose) infos.push_back(tensor.info);
  std::string bytes = io::make_safetensors_header(infos, {});
  for (const LooseTensor& tensor : loose) bytes += tensor.bytes;
  write_bytes(path, bytes);
}

}  // namespace snug::train
