#include "backends/cpu/cpu.h"

#include <array>

#include "backends/cpu/instructions.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/machine.h"
#include "backends/cpu/onednn/conv2d.h"
#include "backends/cpu/onednn/onednn.h"
#include "backends/cpu/promoted.h"
#include "backends/cpu/sparse/conv2d.h"
#include "backends/host_device.h"
#include "backends/reference/reference.h"
#include "ir/family.h"

namespace snug::backends {

namespace cpu {
namespace {

constexpr FamilyMember<KernelDef> kFamilies[] = {
#define SNUG_FAMILY(...) __VA_ARGS__,
#include "backends/cpu/families.inc"
#undef SNUG_FAMILY
};

}  // namespace
}  // namespace cpu

Backend cpu_backend(int threads) {
  static constexpr std::array kOwn = addresses_of(cpu::kFamilies);
  Backend backend{.name = "cpu",
                  .kernels = {kOwn.begin(), kOwn.end()},
                  .threads = threads,
                  .device = host_device(threads),
                  .machine = cpu::machine(),
                  .instructions = cpu::name_of(cpu::effective_instructions()),
                  .instructions_limit = cpu::held_instructions().reason,
                  .product_speeds = cpu::product_speeds(cpu::read_processor(), cpu::effective_instructions()),
                  .preferred_weight_layout = cpu::preferred_conv2d_weight_layout,
                  .read_opaque = cpu::read_opaque,
                  .write_opaque = cpu::write_opaque};
  for (const KernelDef* kernel : cpu::promoted_kernels()) backend.kernels.push_back(kernel);
  for (const KernelDef* kernel : reference_backend(threads).kernels) backend.kernels.push_back(kernel);
  return backend;
}

}  // namespace snug::backends
