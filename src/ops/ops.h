// Every op by name. An op's own file in this folder defines everything about it; families.inc is the one list of them all.
#pragma once

#include <span>
#include <string_view>

#include "ir/op.h"

namespace snug::ops {

#define SNUG_FAMILY(...) extern const OpDef __VA_ARGS__;
#include "ops/families.inc"
#undef SNUG_FAMILY

std::span<const OpDef* const> all();

// The op of that name, or nullptr. The default OpLookup.
const OpDef* find(std::string_view name);

}  // namespace snug::ops
