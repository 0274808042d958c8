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

// Measured of all convolutions of WRN-28-2, beside floats, on a Zen 4 with ONEDNN_MAX_CPU_ISA at each of these
// (kernel_bench --batch 10 --threads 1 --least --precision).
ProductSpeeds product_speeds() {
  // Through floats, which a core converts in its own cache: 0.94 to 1.03.
  constexpr double kConverted = 0.97;
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::avx512_core_bf16:
    case dnnl::cpu_isa::avx512_core_amx:        // has matrix products besides, which were never measured
      return {.bf16 = 1.9, .f16 = kConverted};  // 1.97 on one thread, 1.74 by sparse_bench on two
    case dnnl::cpu_isa::avx512_core:
    case dnnl::cpu_isa::avx512_core_vnni:
      return {.bf16 = 0.32, .f16 = kConverted};  // oneDNN then makes a product of bf16 from several instructions
    default:
      return {.bf16 = kConverted, .f16 = kConverted};  // no convolutions of bf16
  }
}

std::string machine() {
  const dnnl_version_t& version = *dnnl_version();
  return fmt::format("{}, {}, oneDNN {}.{}.{}", processor(), instruction_set(), version.major, version.minor, version.patch);
}

}  // namespace snug::backends::cpu
