// Every kernel of the CPU backend except the reference's, which come last; families.inc is the one list, best first.
#pragma once

#include "ir/kernel.h"

namespace snug::backends::cpu {

#define SNUG_FAMILY(...) extern const KernelDef __VA_ARGS__;
#include "backends/cpu/families.inc"
#undef SNUG_FAMILY

}  // namespace snug::backends::cpu
