// Safetensors files: refused with a UserError, or every tensor can be read from within the file, and the header written again is
// read as the same one.
#include <vector>

#include "fuzz_input.h"
#include "io/safetensors.h"
#include <snug/error.h>

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned /*seed*/) {
  static const std::string seed = [] {
    std::vector<snug::io::TensorInfo> tensors{{.name = "a", .dtype = snug::io::TensorDType::f64, .shape = {2, 1}},
                                              {.name = "b", .dtype = snug::io::TensorDType::bf16, .shape = {0}},
                                              {.name = "c", .dtype = snug::io::TensorDType::u8, .shape = {}}};
    return snug::io::make_safetensors_header(tensors, {{"key", "text"}}) + std::string(17, 'x');
  }();
  return snug::fuzz::mutate_from(seed, data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const snug::fuzz::MemoryFile file(snug::fuzz::text_of(data, size));
  try {
    const snug::io::SafetensorsReader reader(file.path());
    std::string again;
    std::vector<snug::io::TensorInfo> tensors = reader.header().tensors;
    again = snug::io::make_safetensors_header(tensors, reader.header().metadata);
    for (const snug::io::TensorInfo& tensor : reader.header().tensors) {
      std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes));
      reader.read(tensor, bytes);
      again.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    const snug::fuzz::MemoryFile copy(again);
    const snug::io::SafetensorsReader second(copy.path());
    if (second.header().tensors.size() != tensors.size() || second.header().metadata != reader.header().metadata) std::abort();
  } catch (const snug::UserError&) {
  }
  return 0;
}
