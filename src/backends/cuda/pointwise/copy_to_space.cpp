#include "backends/cuda/call.h"
#include "backends/cuda/kernels.h"

namespace snug::backends::cuda {

namespace {

// Copies bytes of any type.
KernelMatch match(const KernelQuery& query) {
  if (query.inputs[0] != query.outputs[0]) return Refuse{"only a value of the same type and layout is the same bytes"};
  return Accept{};
}

std::unique_ptr<BoundKernel> bind(const KernelArguments& arguments) {
  const Call call(arguments);
  return call.launch([from = call.in<std::byte>(0), to = call.out<std::byte>(0),
                      bytes = static_cast<std::size_t>(call.output_type(0).bytes().count())](cudaStream_t stream) {
    // Addresses tell their memory space.
    if (from != to) SNUG_CUDA_CALL(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
  });
}

}  // namespace

constinit const KernelDef copy_to_space{
    .name = "cuda_copy_to_space", .op = "copy_to_space", .match = match, .bind = bind, .takes_host = true};

}  // namespace snug::backends::cuda
