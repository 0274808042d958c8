// What the fuzzers share: a seed to begin from without a corpus, inputs as files, and a model small enough to mutate.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/reference/reference.h"
#include "frontend/graph_builder.h"
#include "plan/compile.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace snug::fuzz {

// libFuzzer begins with next to nothing; a mutation of that gives the seed instead. The result's size.
inline std::size_t mutate_from(std::string_view seed, std::uint8_t* data, std::size_t size, std::size_t max_size) {
  if (size < 8 && seed.size() <= max_size) {
    std::copy(seed.begin(), seed.end(), data);
    size = seed.size();
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

// A file in memory with these bytes.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : descriptor_(::memfd_create("fuzz", 0)) {
    if (descriptor_ < 0 || ::write(descriptor_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) std::abort();
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

inline Plan tiny_plan(const Backend& backend) {
  frontend::GraphBuilder b("tiny", 2);
  b.softmax_cross_entropy(b.linear("fc", b.features({3}), 2));
  return compile(std::move(b).finish(), backend);
}

}  // namespace snug::fuzz
