// What training takes beside its arena: measured, and shown separately.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "ir/device.h"
#include "train/session.h"

namespace snug::train {

struct Overheads {
  Bytes peak_resident_bytes;           // of the process, as the operating system counts it
  Bytes process_overhead_bytes;        // the part of it outside the arenas
  std::optional<DriverMemory> device;  // what the driver of a GPU holds for the process beside the arena
};

Overheads measure_overheads(Session& session);

// process_overhead_bytes and, where a driver reports it, device_overhead_bytes and device_overhead_source.
void put_overheads(nlohmann::ordered_json& json, const Overheads& overheads);
// The inverse.
Overheads read_overheads(const nlohmann::ordered_json& json);

// "the driver holds 540.00 MB on the GPU beside the arena".
std::string describe(const DriverMemory& beside_arena);

}  // namespace snug::train
