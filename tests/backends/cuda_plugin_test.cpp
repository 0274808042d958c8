#include "backends/cuda_plugin.h"

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "base/error.h"

namespace snug::backends {
namespace {

std::string refusal(const CudaOptions& options) {
  try {
    load_cuda_backend(options);
  } catch (const UserError& error) {
    return error.what();
  }
  return "loaded";
}

TEST(CudaPlugin, MissingFileIsNamedAndTheWayOutGiven) {
  const std::string message = refusal({.plugin = "/nowhere/libsnug_cuda.so"});
  EXPECT_TRUE(message.starts_with("the CUDA plugin could not be loaded: /nowhere/libsnug_cuda.so")) << message;
  EXPECT_TRUE(message.ends_with("build it with the preset 'cuda', or name it in SNUG_CUDA_PLUGIN")) << message;
}

TEST(CudaPlugin, EnvironmentNamesTheOnlyPlaceToLook) {
  const char* before = std::getenv("SNUG_CUDA_PLUGIN");
  const std::string kept = before == nullptr ? "" : before;
  setenv("SNUG_CUDA_PLUGIN", "/elsewhere/plugin.so", 1);
  EXPECT_TRUE(refusal({}).starts_with("the CUDA plugin could not be loaded: /elsewhere/plugin.so"));
  setenv("SNUG_CUDA_PLUGIN", kept.c_str(), 1);
}

TEST(CudaPlugin, LibraryThatIsNotSnugsIsRefused) {
  EXPECT_EQ(refusal({.plugin = "libm.so.6"}),
            "the CUDA plugin has no 'snug_cuda_fingerprint'; it is not Snug's, or it is damaged");
}

}  // namespace
}  // namespace snug::backends
