// Indices of sharded weights: refused with a UserError, or every tensor has a file whose name leads nowhere else.
#include "fuzz_input.h"
#include "io/weights_file.h"
#include <snug/error.h>

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned /*seed*/) {
  return snug::fuzz::mutate_from(
      R"({"metadata": {"total_size": 12}, "weight_map": {"a.weight": "x-1.safetensors", "a.bias": "x-2.safetensors"}})", data,
      size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    for (const snug::io::IndexedTensor& tensor : snug::io::parse_weights_index(snug::fuzz::text_of(data, size), "the index")) {
      const std::filesystem::path file(tensor.file);
      if (file.empty() || file.filename() != file || file == "." || file == "..") std::abort();
    }
  } catch (const snug::UserError&) {
  }
  return 0;
}
