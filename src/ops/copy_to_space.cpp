#include <array>

#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"

// copy_to_space(x) {host: 0|1} -> the same bytes in host memory, or on the device; x may lie in either, and if it already lies in
// the target the copy may be x itself. The only op between memory spaces: every other works on the device alone.

namespace snug::ops {

namespace {

std::vector<Type> infer(const OpCall& call) {
  require_inputs(call, 1);
  const std::int64_t host = call.attributes.integer("host");
  if (host != 0 && host != 1) throw_user_error("host is {}; it is 1 for a copy to host memory, 0 for one to the device", host);
  return {call.inputs[0]};
}

MemorySpace target(const Attributes& attributes) {
  return attributes.integer("host") == 1 ? MemorySpace::host : MemorySpace::device;
}

constexpr std::array<InPlacePromise, 1> kInPlace{{{.output = 0, .input = 0}}};

}  // namespace

constinit const OpDef copy_to_space{.name = "copy_to_space",
                                    .infer = infer,
                                    .in_place = kInPlace,
                                    .cheap_to_recompute = true,
                                    .output_space = target,
                                    .is_auxiliary = true};

}  // namespace snug::ops
