#include "conformance/cuda_under_test.h"

#include <cstdlib>

#include "backends/cuda_plugin.h"
#include "base/error.h"

namespace snug::conformance {

std::optional<Backend> open_cuda(std::string& why_not) {
  static std::string reason;
  static const std::optional<Backend> backend = []() -> std::optional<Backend> {
    try {
      return backends::load_cuda_backend();
    } catch (const UserError& error) {
      reason = error.what();
      return std::nullopt;
    }
  }();
  if (!backend && std::getenv("SNUG_REQUIRE_CUDA") != nullptr) throw UserError(reason);
  why_not = "skipped: no device (" + reason + ")";
  return backend;
}

}  // namespace snug::conformance
