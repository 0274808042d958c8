#include "api/memory_summary.h"

namespace snug {

MemorySummary summarize(const Plan& plan, std::optional<Bytes> plain_peak_bytes) {
  const PeakMoment peak = peak_moment(plan);
  const Methods& methods = plan.methods;
  const auto bytes = [&](MemoryClass c) { return peak.by_class[static_cast<std::size_t>(c)].count(); };
  return {.planned_peak_bytes = plan.planned_peak_bytes.count(),
          .bound_bytes = plan.bound_bytes.count(),
          .plain_peak_bytes = plain_peak_bytes.value_or(Bytes(0)).count(),
          .host_bytes = plan.host.planned_peak_bytes.count(),
          .microbatch = plan.program.microbatch,
          .compress_bits = static_cast<int>(methods.compress_bits.value_or(0)),
          .nonzero = methods.nonzero.value_or(1),
          .checkpoint = methods.checkpoint ? to_string(*methods.checkpoint) : "as planned",
          .precision = std::string(precision_name(methods.precision.value_or(DType::f32))),
          .by_class = {.model = bytes(MemoryClass::model),
                       .gradient = bytes(MemoryClass::gradient),
                       .optimizer = bytes(MemoryClass::optimizer),
                       .activation = bytes(MemoryClass::activation),
                       .workspace = bytes(MemoryClass::workspace),
                       .input = bytes(MemoryClass::input)}};
}

}  // namespace snug
