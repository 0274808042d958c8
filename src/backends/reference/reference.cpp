#include "backends/reference/reference.h"

#include "backends/host_device.h"
#include "backends/reference/kernels.h"
#include "base/error.h"

namespace snug::backends {

Backend reference_backend(int threads) {
  SNUG_CHECK(threads >= 1, "a backend of {} threads was asked for", threads);
  return {.name = "reference",
          .kernels = {reference::kAll.begin(), reference::kAll.end()},
          .threads = threads,
          .device = host_device(threads)};
}

}  // namespace snug::backends
