// The safetensors format: 8 bytes of header length, a JSON header, then the tensors' bytes without gaps.
//
//   {"__metadata__": {"key": "text"}, "conv1.weight": {"dtype": "F32", "shape": [64, 3, 7, 7], "data_offsets": [0, 37632]}, ...}
//
// The header is checked completely before any tensor is read: names, types, shapes, and that the tensors cover the rest of the
// file exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/file_io.h"

namespace snug::io {

enum class TensorDType : std::uint8_t { f64, f32, f16, bf16, f8_e4m3, f8_e5m2, i64, i32, i16, i8, u64, u32, u16, u8, boolean };

// "F32"
std::string_view name_of(TensorDType dtype);
std::size_t bytes_per_element(TensorDType dtype);

struct TensorInfo {
  std::string name;
  TensorDType dtype = TensorDType::f32;
  std::vector<std::int64_t> shape;  // empty: a single number
  std::uint64_t begin = 0;          // in the file, past the header; a writer sets it
  std::uint64_t bytes = 0;          // a writer sets it
  std::size_t file = 0;             // index of the file, where several make up a model (weights_file.h)

  friend bool operator==(const TensorInfo&, const TensorInfo&) = default;
};

struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;  // in the order of their bytes
  std::map<std::string, std::string> metadata;

  const TensorInfo* find(std::string_view name) const;
};

// The header of a file of `file_bytes` bytes, from its text; `begin` of the tensors counts from the file's start. UserError with
// one sentence, naming `source`, about the first thing wrong.
SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t file_bytes, std::string_view source);

class SafetensorsReader {
 public:
  // UserError when the file cannot be read or its header is wrong.
  explicit SafetensorsReader(const std::filesystem::path& path);

  const SafetensorsHeader& header() const { return header_; }
  const InputFile& file() const { return file_; }
  // `target` has the tensor's size. To read in pieces, use file() from TensorInfo::begin on.
  void read(const TensorInfo& tensor, std::span<std::byte> target) const;

 private:
  InputFile file_;
  SafetensorsHeader header_;
};

// Lays out the tensors one after the other, in the order given, and returns the bytes that come before the first: length and
// header. Sets their `begin` and `bytes`.
std::string make_safetensors_header(std::vector<TensorInfo>& tensors, const std::map<std::string, std::string>& metadata);

}  // namespace snug::io
