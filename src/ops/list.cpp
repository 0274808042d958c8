#include <array>

#include "ir/family.h"
#include "ops/ops.h"

namespace snug::ops {

namespace {

constexpr FamilyMember<OpDef> kFamilies[] = {
#define SNUG_FAMILY(...) __VA_ARGS__,
#include "ops/families.inc"
#undef SNUG_FAMILY
};
constexpr std::array kAll = addresses_of(kFamilies);

}  // namespace

std::span<const OpDef* const> all() { return kAll; }

const OpDef* find(std::string_view name) {
  for (const OpDef* op : kAll) {
    if (op->name == name) return op;
  }
  return nullptr;
}

}  // namespace snug::ops
