// What a kernel of this backend is bound to, and how to make a KernelDef from one function for each stored type:
//
//   template <typename T> std::unique_ptr<BoundKernel> bind_relu(const Call& call) {
//     return call.launch([x = call.in<T>(0), ...](cudaStream_t stream) { launch::relu<T>(stream, x, ...); });
//   }
//   constinit const KernelDef relu = define<[]<typename T>() { return bind_relu<T>; }>("cuda_relu");
//
// T runs over `Reals`. A function that is not a template is passed directly: define<bind_factor, kFactor>.
//
// Everything is read from types and attributes when a kernel is bound; its run() only enqueues. What changes between steps is
// read on the device, from the scalar block.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "backends/cuda/device/device.h"
#include "backends/operands.h"
#include "ir/kernel.h"
#include "ir/scalars.h"

namespace snug::backends {

template <>
inline constexpr DType kStoredAs<__half> = DType::f16;
template <>
inline constexpr DType kStoredAs<__nv_bfloat16> = DType::bf16;

}  // namespace snug::backends

namespace snug::backends::cuda {

enum class Layouts : std::uint8_t {
  equal,   // any one, the same for all operands of rank 3 and more: the kernel works by position
  images,  // operands of rank 3 and more are channels-last: the kernel knows channels and pixels
  any,
};

// What values are stored as; computed with in f32.
using Reals = RealTypes<float, __half, __nv_bfloat16>;

struct Signature {
  ElementList inputs{};
  ElementList outputs{};
  Layouts layouts = Layouts::equal;

  Elements elements() const { return {.inputs = inputs, .outputs = outputs}; }
};

// Why the operands cannot be taken; nothing when they can.
std::optional<std::string> refusal(const Signature& signature, const KernelQuery& query);

template <typename F>
class Launch final : public BoundKernel {
 public:
  Launch(cudaStream_t stream, F enqueue) : stream_(stream), enqueue_(std::move(enqueue)) {}
  void run() override { enqueue_(stream_); }

 private:
  cudaStream_t stream_;
  F enqueue_;
};

class Call {
 public:
  explicit Call(const KernelArguments& arguments) : arguments_(arguments) {}

  const Attributes& attributes() const { return arguments_.attributes; }
  std::size_t input_count() const { return arguments_.inputs.size(); }
  const Type& input_type(std::size_t i) const { return arguments_.inputs[i].type; }
  const Type& output_type(std::size_t i) const { return arguments_.outputs[i].type; }
  const Shape& input_shape(std::size_t i) const { return input_type(i).shape; }
  const Shape& output_shape(std::size_t i) const { return output_type(i).shape; }
  std::int64_t elements() const { return output_type(0).elements(); }

  template <typename T>
  const T* in(std::size_t i) const {
    return reinterpret_cast<const T*>(arguments_.inputs[i].data);
  }
  template <typename T>
  T* out(std::size_t i) const {
    return reinterpret_cast<T*>(arguments_.outputs[i].data);
  }
  const Scalars* scalars(std::size_t i) const { return in<Scalars>(i); }
  // The value to which the attribute `accumulate` adds output 0; nullptr without it.
  template <typename T>
  const T* addend() const {
    return accumulates(attributes()) ? in<T>(input_count() - 1) : nullptr;
  }
  template <typename T>
  T* workspace() const {
    return reinterpret_cast<T*>(arguments_.workspace.data());
  }
  std::span<std::byte> workspace_bytes() const { return arguments_.workspace; }
  CudaDevice& device() const { return cuda_device(arguments_.device); }

  template <typename F>
  std::unique_ptr<BoundKernel> launch(F enqueue) const {
    return std::make_unique<Launch<F>>(device().stream(), std::move(enqueue));
  }

 private:
  const KernelArguments& arguments_;
};

using Binder = std::unique_ptr<BoundKernel> (*)(const Call&);
using WorkspaceOf = Bytes (*)(const KernelQuery&);

inline Bytes no_workspace(const KernelQuery& /*query*/) { return {}; }

KernelMatch match_operands(const Signature& signature, WorkspaceOf workspace, const KernelQuery& query);
// `binders`: one for each of Reals.
std::unique_ptr<BoundKernel> bind_one(std::span<const Binder> binders, const Signature& signature,
                                      const KernelArguments& arguments);

// `op`: by default what follows the kernel's first underscore; the part before it names the library.
template <auto BinderOf, Signature Operands = Signature{}, WorkspaceOf Workspace = no_workspace>
consteval KernelDef define(std::string_view name, std::string_view op = {}) {
  return {.name = name,
          .op = op.empty() ? name.substr(name.find('_') + 1) : op,
          .match = [](const KernelQuery& query) { return match_operands(Operands, Workspace, query); },
          .bind =
              [](const KernelArguments& arguments) {
                static constexpr auto kBinders = Reals::functions<BinderOf>();
                return bind_one(kBinders, Operands, arguments);
              }};
}

}  // namespace snug::backends::cuda
