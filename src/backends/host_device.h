// The machine's own memory and cores: the device of the reference and CPU backends.
#pragma once

#include <memory>

#include "ir/device.h"

namespace snug::backends {

// Its arena is a mapping of exactly the planned size between guard pages.
std::shared_ptr<Device> host_device();

}  // namespace snug::backends
