#include "train/overheads.h"

#include <fmt/format.h>

#include "base/process_memory.h"

namespace snug::train {

namespace {

using Counted = DriverMemory::Counted;

constexpr const char* kForProcess = "nvml process";
constexpr const char* kAsDeviceGrowth = "nvml device growth";

}  // namespace

Overheads measure_overheads(Session& session) {
  Executor& executor = session.executor();
  const Bytes resident = process_memory().peak_resident;
  const Plan& plan = session.plan();
  const Bytes arenas = plan.host.planned_peak_bytes + (executor.arena().host_accessible() ? plan.planned_peak_bytes : Bytes(0));
  return {.peak_resident_bytes = resident,
          .process_overhead_bytes = resident - arenas,
          .device = executor.driver_memory_beside_arena()};
}

void put_overheads(nlohmann::ordered_json& json, const Overheads& overheads) {
  json["process_overhead_bytes"] = overheads.process_overhead_bytes.count();
  if (!overheads.device) return;
  json["device_overhead_bytes"] = overheads.device->bytes.count();
  json["device_overhead_source"] = overheads.device->counted == Counted::for_process ? kForProcess : kAsDeviceGrowth;
}

Overheads read_overheads(const nlohmann::ordered_json& json) {
  Overheads overheads;
  overheads.process_overhead_bytes = Bytes(json.at("process_overhead_bytes").get<std::int64_t>());
  if (json.contains("device_overhead_bytes")) {
    overheads.device = {
        .bytes = Bytes(json.at("device_overhead_bytes").get<std::int64_t>()),
        .counted = json.at("device_overhead_source") == kForProcess ? Counted::for_process : Counted::as_device_growth};
  }
  return overheads;
}

std::string describe(const DriverMemory& beside_arena) {
  return fmt::format(
      "the driver holds {} on the GPU beside the arena{}", format_bytes(beside_arena.bytes),
      beside_arena.counted == Counted::for_process ? "" : ", if no other process took or freed memory there meanwhile");
}

}  // namespace snug::train
