// Which processor this is, and which libraries compute on it.
#pragma once

#include <string>

#include "ir/kernel.h"

namespace snug::backends::cpu {

// "AMD EPYC 9R14, avx512_core_bf16, oneDNN 2.6.3": what measured times depend on.
std::string machine();

// By the instructions that oneDNN uses on this processor.
ProductSpeeds product_speeds();

}  // namespace snug::backends::cpu
