#include "backends/cuda_plugin.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <system_error>
#include <vector>

#include "backends/cuda_plugin_abi.h"
#include "base/error.h"

namespace snug::backends {

namespace {

constexpr const char* kFileName = "libsnug_cuda.so";

// Places to look, in order. A path that the user named is the only one.
std::vector<std::string> candidates(const CudaOptions& options) {
  if (!options.plugin.empty()) return {options.plugin};
  if (const char* named = std::getenv("SNUG_CUDA_PLUGIN"); named != nullptr && *named != '\0') return {named};
  std::vector<std::string> paths;
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    const std::filesystem::path folder = program.parent_path();
    for (const std::filesystem::path& place : {folder, folder.parent_path(), folder.parent_path() / "lib"}) {
      const std::filesystem::path file = place / kFileName;
      if (std::filesystem::exists(file, error)) paths.push_back(file.string());
    }
  }
  paths.emplace_back(kFileName);  // the loader's own search: LD_LIBRARY_PATH and the system's folders
  return paths;
}

// Never closed: kernels, devices and the Backend's name live in it.
void* open_library(const CudaOptions& options) {
  std::string reason;
  for (const std::string& path : candidates(options)) {
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) return library;
    if (reason.empty()) reason = dlerror();
  }
  throw_user_error("the CUDA plugin could not be loaded: {}; build it with the preset 'cuda', or name it in SNUG_CUDA_PLUGIN",
                   reason);
}

template <typename Function>
Function symbol(void* library, const char* name) {
  void* address = dlsym(library, name);
  if (address == nullptr) throw_user_error("the CUDA plugin has no '{}'; it is not Snug's, or it is damaged", name);
  return reinterpret_cast<Function>(address);
}

}  // namespace

Backend load_cuda_backend(const CudaOptions& options) {
  void* library = open_library(options);
  const std::string theirs = symbol<CudaFingerprintFunction>(library, kCudaFingerprintSymbol)();
  const std::string ours = cuda_plugin_fingerprint();
  if (theirs != ours)
    throw_user_error("the CUDA plugin was built from other sources than this program ({} against {}); build both again", theirs,
                     ours);
  Backend backend;
  symbol<CudaOpenFunction>(library, kCudaOpenSymbol)(options, backend);
  return backend;
}

}  // namespace snug::backends
