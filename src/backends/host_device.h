// Main memory and the CPU's cores: the device of the reference and CPU backends.
#pragma once

#include <memory>

#include "ir/device.h"

namespace snug::backends {

// An arena, for either memory space, is a mapping of exactly the planned size between guard pages. Sections run on `threads`
// threads, libraries' own loops included.
std::shared_ptr<Device> host_device(int threads);

}  // namespace snug::backends
