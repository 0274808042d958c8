#include "backends/cpu/machine.h"

#include <fstream>
#include <string_view>

#include <dnnl.hpp>
#include <fmt/format.h>

namespace snug::backends::cpu {

namespace {

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    if (begin != std::string::npos) return line.substr(begin);
  }
  return "unknown processor";
}

// The instructions that oneDNN's kernels are made of.
std::string instruction_set() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41:
      return "sse41";
    case dnnl::cpu_isa::avx:
      return "avx";
    case dnnl::cpu_isa::avx2:
      return "avx2";
    case dnnl::cpu_isa::avx512_core:
      return "avx512_core";
    case dnnl::cpu_isa::avx512_core_vnni:
      return "avx512_core_vnni";
    case dnnl::cpu_isa::avx512_core_bf16:
      return "avx512_core_bf16";
    default:
      return fmt::format("instruction set {:#x}", static_cast<unsigned>(dnnl::get_effective_cpu_isa()));
  }
}

}  // namespace

std::string machine() {
  const dnnl_version_t& version = *dnnl_version();
  return fmt::format("{}, {}, oneDNN {}.{}.{}", processor(), instruction_set(), version.major, version.minor, version.patch);
}

}  // namespace snug::backends::cpu
