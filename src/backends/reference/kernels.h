// The reference kernels: one for every op, under its name, so that the list of ops is theirs too. An op's file in ops/ says what
// it computes.
#pragma once

#include <array>

#include "ir/family.h"
#include "ir/kernel.h"

namespace snug::backends::reference {

#define SNUG_FAMILY(...) extern const KernelDef __VA_ARGS__;
#include "ops/families.inc"
#undef SNUG_FAMILY

inline constexpr FamilyMember<KernelDef> kFamilies[] = {
#define SNUG_FAMILY(...) __VA_ARGS__,
#include "ops/families.inc"
#undef SNUG_FAMILY
};
inline constexpr std::array kAll = addresses_of(kFamilies);

}  // namespace snug::backends::reference
