// cuDNN's convolutions through its graph interface, which says before anything runs whether an engine supports a problem, how
// much scratch it needs, and its numerics.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <cudnn.h>

#include "backends/cuda/device/device.h"
#include "backends/cuda/device/handles.h"
#include "ir/type.h"
#include "ops/conv2d.h"

namespace snug::backends::cuda {

enum class ConvolutionKind : std::uint8_t { forward, grad_input, grad_weight };

struct ConvolutionProblem {
  ConvolutionKind kind;
  ops::Conv2dGeometry geometry;
  DType dtype;                                // f32, f16 or bf16, of all three operands; sums are in f32
  std::optional<Bytes> workspace_limit = {};  // nothing: the device's
};

// An engine that was found for a problem. Nodes of the same problem share it.
class ConvolutionPlan;

// The operands by their part in the forward pass: image in, weight, image out. One of them is written.
struct ConvolutionOperands {
  void* x;
  void* weight;
  void* y;
};

// Bound kernels keep it alive: see CudaDevice::close_unused_libraries.
class Convolutions : public std::enable_shared_from_this<Convolutions> {
 public:
  explicit Convolutions(CudaDevice& device);
  ~Convolutions();
  Convolutions(const Convolutions&) = delete;
  Convolutions& operator=(const Convolutions&) = delete;

  struct Choice {
    std::shared_ptr<const ConvolutionPlan> plan;  // none: refused
    std::string refusal;
    Bytes workspace;
    std::string engine;  // its number, for display
  };
  // The fastest engine, by cuDNN's heuristics, that is deterministic, does not round its operands,
  // and keeps the limit of scratch; when none does, the one with the least scratch. Engines
  // compiled at run time come last: they cost a second each.
  const Choice& choose(const ConvolutionProblem& problem);

  std::unique_ptr<BoundKernel> bind(const Choice& choice, const ConvolutionOperands& operands, std::span<std::byte> workspace);

 private:
  using Handle = Owner<cudnnHandle_t, cudnnDestroy>;

  CudaDevice& device_;
  Handle handle_;
  std::map<std::string, Choice> choices_;
};

}  // namespace snug::backends::cuda
