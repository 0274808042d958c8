// Every kernel of the CUDA backend; families.inc is the one list, best first. An op's file in ops/ says what it computes.
#pragma once

#include "ir/kernel.h"

namespace snug::backends::cuda {

#define SNUG_FAMILY(...) extern const KernelDef __VA_ARGS__;
#include "backends/cuda/families.inc"
#undef SNUG_FAMILY

}  // namespace snug::backends::cuda
