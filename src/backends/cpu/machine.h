// Which processor this is, and which libraries compute on it.
#pragma once

#include <string>

#include <dnnl.hpp>

#include "ir/kernel.h"

namespace snug::backends::cpu {

// "AMD EPYC 9R14, avx512_core_bf16, oneDNN 2.6.3": what measured times depend on.
std::string machine();

// The processor's vendor and generation, from CPUID.
struct Processor {
  std::string vendor;  // "AuthenticAMD", "GenuineIntel"
  int family = 0;      // 0x19: Zen 3 and Zen 4
};
Processor read_processor();

// Whether products of bf16 by the processor's own instructions are faster than those of floats, by a fixed table too.
bool multiplies_bf16(const Processor& processor, dnnl::cpu_isa isa);

// How fast 16-bit products are by a fixed table: nothing is timed, so that the same machine always gives the same plans.
ProductSpeeds product_speeds(const Processor& processor, dnnl::cpu_isa isa);

}  // namespace snug::backends::cpu
