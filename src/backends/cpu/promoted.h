// Every op on 16-bit numbers, the simple way: a kernel for floats, mostly the reference, with its 16-bit operands converted in
// the workspace. Made from the reference's list, so a new op has one as soon as it has a reference kernel.
// For ops without a faster kernel; the workspace is as large as the operands as floats.
#pragma once

#include <span>

#include "ir/kernel.h"

namespace snug::backends::cpu {

std::span<const KernelDef* const> promoted_kernels();

}  // namespace snug::backends::cpu
