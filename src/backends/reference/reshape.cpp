#include <cstring>

#include "backends/reference/call.h"
#include "backends/reference/kernels.h"

namespace snug::backends::reference {

namespace {

// A view: where the plan gives both the same bytes there is nothing to do.
template <typename T>
void run_reshape(const Call& call) {
  if (call.outputs[0].data == call.inputs[0].data) return;
  std::memcpy(call.outputs[0].data, call.inputs[0].data, static_cast<std::size_t>(call.outputs[0].type.bytes().count()));
}

template <typename T>
void run_relayout(const Call& call) {
  const auto x = call.elementwise<T>(0);
  const Result<T> y = call.result<T>();
  parallel_for(call, y.elements(), [&](std::int64_t i) { y.set(i, x[i]); });
}

}  // namespace

constinit const KernelDef reshape = define<[]<typename T>() { return run_reshape<T>; }>("reference_reshape");
constinit const KernelDef relayout = define<[]<typename T>() { return run_relayout<T>; }>("reference_relayout");

}  // namespace snug::backends::reference
