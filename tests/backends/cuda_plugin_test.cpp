#include "backends/cuda_plugin.h"

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/messages.h"

namespace snug::backends {
namespace {

std::string refusal(const CudaOptions& options) {
  return support::message_of<UserError>([&] { load_cuda_backend(options); });
}

TEST(CudaPlugin, MissingFileIsNamedAndTheWayOutGiven) {
  const std::string message = refusal({.plugin = "/nowhere/libsnug_cuda.so"});
  EXPECT_TRUE(support::mentions(message, {"CUDA plugin", "/nowhere/libsnug_cuda.so"})) << message;
  EXPECT_TRUE(support::mentions(message, {"preset", "'cuda'", "SNUG_CUDA_PLUGIN"})) << message;
}

TEST(CudaPlugin, EnvironmentNamesTheOnlyPlaceToLook) {
  const char* before = std::getenv("SNUG_CUDA_PLUGIN");
  const std::string kept = before == nullptr ? "" : before;
  setenv("SNUG_CUDA_PLUGIN", "/elsewhere/plugin.so", 1);
  EXPECT_TRUE(support::mentions(refusal({}), {"CUDA plugin", "/elsewhere/plugin.so"}));
  setenv("SNUG_CUDA_PLUGIN", kept.c_str(), 1);
}

TEST(CudaPlugin, LibraryThatIsNotSnugsIsRefused) {
  EXPECT_TRUE(support::mentions(refusal({.plugin = "libm.so.6"}), {"CUDA", "plugin", "'snug_cuda_fingerprint'"}));
}

}  // namespace
}  // namespace snug::backends
