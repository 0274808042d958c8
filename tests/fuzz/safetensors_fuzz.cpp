// Safetensors files: refused with a UserError, or every tensor can be read from within the file, and the header written again is
// read as the same one.
#include <vector>

#include "fuzz_input.h"
#include "train/safetensors.h"
#include <snug/error.h>

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned /*seed*/) {
  static const std::string seed = [] {
    std::vector<snug::train::TensorInfo> tensors{{.name = "a", .dtype = snug::train::TensorDType::f64, .shape = {2, 1}},
                                                 {.name = "b", .dtype = snug::train::TensorDType::bf16, .shape = {0}},
                                                 {.name = "c", .dtype = snug::train::TensorDType::u8, .shape = {}}};
    return snug::train::make_safetensors_header(tensors, {{"key", "text"}}) + std::string(17, 'x');
  }();
  return snug::fuzz::mutate_from(seed, data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const snug::fuzz::MemoryFile file(snug::fuzz::text_of(data, size));
  try {
    const snug::train::SafetensorsReader reader(file.path());
    std::string again;
    std::vector<snug::train::TensorInfo> tensors = reader.header().tensors;
    again = snug::train::make_safetensors_header(tensors, reader.header().metadata);
    for (const snug::train::TensorInfo& tensor : reader.header().tensors) {
      std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes));
      reader.read(tensor, bytes);
      again.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    const snug::fuzz::MemoryFile copy(again);
    const snug::train::SafetensorsReader second(copy.path());
    if (second.header().tensors.size() != tensors.size() || second.header().metadata != reader.header().metadata) std::abort();
  } catch (const snug::UserError&) {
  }
  return 0;
}
