#include "backends/cpu/machine.h"

#include <fstream>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <fmt/format.h>

#include "backends/cpu/instructions.h"

namespace snug::backends::cpu {

namespace {

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    if (begin != std::string::npos) return line.substr(begin);
  }
  return "unknown processor";
}

}  // namespace

Processor read_processor() {
  Processor processor;
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(0, &a, &b, &c, &d) != 0) {
    for (const unsigned word : {b, d, c}) {
      for (unsigned shift = 0; shift < 32; shift += 8) processor.vendor += static_cast<char>((word >> shift) & 0xffU);
    }
  }
  if (__get_cpuid(1, &a, &b, &c, &d) != 0) {
    const unsigned base = (a >> 8U) & 0xfU;
    processor.family = static_cast<int>(base == 0xfU ? base + ((a >> 20U) & 0xffU) : base);
  }
#endif
  return processor;
}

bool multiplies_bf16(const Processor& processor, dnnl::cpu_isa isa) {
  if (isa == dnnl::cpu_isa::avx512_core_amx) return true;
  return isa == dnnl::cpu_isa::avx512_core_bf16 && processor.vendor != "GenuineIntel";
}

// Of all convolutions of WRN-28-2, relative to floats.
ProductSpeeds product_speeds(const Processor& processor, dnnl::cpu_isa isa) {
  // Through floats, converted in a core's cache. Zen 4, kernel_bench --batch 10 --threads 1 --least
  // --precision: 0.94 to 1.03.
  constexpr double kConverted = 0.97;
  switch (isa) {
    case dnnl::cpu_isa::avx512_core_bf16:
      // A Zen 4 multiplies a vector of pairs in the time of a vector of floats: by kernel_bench 1.97 on one thread, by
      // sparse_bench 1.74 on two.
      if (processor.vendor == "AuthenticAMD" && processor.family == 0x19) return {.bf16 = 1.9, .f16 = kConverted};
      // Intel's processors do half as many in that time. A Xeon held below AMX, WRN-28-2 on two threads: 212 images/s in fp32,
      // 121 in bf16. With this figure the fixed table says the same of whole steps.
      if (processor.vendor == "GenuineIntel") return {.bf16 = 0.53, .f16 = kConverted};
      // Not measured: 1, so that speed does not influence the choice.
      return {.bf16 = 1, .f16 = kConverted};
    case dnnl::cpu_isa::avx512_core_amx:
      // oneDNN 2.6.3's products by tiles are fast, but the code around them is not. A Xeon with AMX, step_bench wrn-28-2 --batch
      // 100 --threads 2: 116 images/s in fp32, 79 in bf16. With this figure the fixed table says the same of whole steps.
      return {.bf16 = 0.63, .f16 = kConverted};
    case dnnl::cpu_isa::avx512_core:
    case dnnl::cpu_isa::avx512_core_vnni:
      // oneDNN then makes a bf16 product from several instructions. Zen 4 limited to these, kernel_bench as above.
      return {.bf16 = 0.32, .f16 = kConverted};
    default:
      return {.bf16 = kConverted, .f16 = kConverted};  // no bf16 convolutions
  }
}

std::string machine() {
  const dnnl_version_t& version = *dnnl_version();
  return fmt::format("{}, {}, oneDNN {}.{}.{}", processor_name(), name_of(effective_instructions()), version.major, version.minor,
                     version.patch);
}

}  // namespace snug::backends::cpu
