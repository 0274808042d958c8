#include "backends/cuda/pointwise/pool.h"

#include "backends/cuda/call.h"
#include "backends/cuda/kernels.h"
#include "base/error.h"
#include "ops/pool.h"

namespace snug::backends::cuda {

namespace {

launch::PoolShape pool_shape(const Call& call, const Shape& input) {
  const auto g = ops::PoolGeometry::from(input, call.attributes());
  const auto narrow = [](std::int64_t size) { return static_cast<int>(size); };
  return {.batch = narrow(g.batch),
          .channels = narrow(g.channels),
          .in_height = narrow(g.in_height),
          .in_width = narrow(g.in_width),
          .out_height = narrow(g.out_height),
          .out_width = narrow(g.out_width),
          .kernel_height = narrow(g.kernel_height),
          .kernel_width = narrow(g.kernel_width),
          .stride_height = narrow(g.stride_height),
          .stride_width = narrow(g.stride_width),
          .padding_height = narrow(g.padding_height),
          .padding_width = narrow(g.padding_width)};
}

template <typename T>
std::unique_ptr<BoundKernel> bind_max_pool(const Call& call) {
  return call.launch([x = call.in<T>(0), y = call.out<T>(0), shape = pool_shape(call, call.input_shape(0))](cudaStream_t stream) {
    launch::max_pool<T>(stream, x, y, shape);
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_argmax(const Call& call) {
  const launch::Argmax argmax{.data = call.out<std::uint8_t>(0), .nibbles = call.output_type(0).dtype == DType::u4};
  return call.launch([x = call.in<T>(0), argmax, shape = pool_shape(call, call.input_shape(0))](cudaStream_t stream) {
    launch::max_pool_argmax<T>(stream, x, argmax, shape);
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_max_pool_grad(const Call& call) {
  return call.launch([dy = call.in<T>(0), x = call.in<T>(1), dx = call.out<T>(0), addend = call.addend<T>(),
                      shape = pool_shape(call, call.input_shape(1))](cudaStream_t stream) {
    launch::max_pool_grad<T>(stream, dy, x, dx, addend, shape);
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_max_pool_grad_argmax(const Call& call) {
  // Only read, though the structure could be written through.
  const launch::Argmax argmax{.data = const_cast<std::uint8_t*>(call.in<std::uint8_t>(1)),
                              .nibbles = call.input_type(1).dtype == DType::u4};
  return call.launch([dy = call.in<T>(0), argmax, dx = call.out<T>(0), addend = call.addend<T>(),
                      shape = pool_shape(call, call.output_shape(0))](cudaStream_t stream) {
    launch::max_pool_grad_argmax<T>(stream, dy, argmax, dx, addend, shape);
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_avg_pool(const Call& call) {
  return call.launch([x = call.in<T>(0), y = call.out<T>(0), shape = pool_shape(call, call.input_shape(0))](cudaStream_t stream) {
    launch::avg_pool<T>(stream, x, y, shape);
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_avg_pool_grad(const Call& call) {
  return call.launch([dy = call.in<T>(0), dx = call.out<T>(0), addend = call.addend<T>(),
                      shape = pool_shape(call, call.output_shape(0))](cudaStream_t stream) {
    launch::avg_pool_grad<T>(stream, dy, dx, addend, shape);
  });
}

launch::PixelShape pixel_shape(const Shape& shape) {
  return {.batch = static_cast<std::uint32_t>(shape[0]),
          .channels = static_cast<std::uint32_t>(shape[1]),
          .pixels = static_cast<std::uint32_t>(shape[2] * shape[3])};
}

template <typename T>
std::unique_ptr<BoundKernel> bind_global_avg_pool(const Call& call) {
  return call.launch([x = call.in<T>(0), y = call.out<T>(0), shape = pixel_shape(call.input_shape(0))](cudaStream_t stream) {
    launch::global_avg_pool<T>(stream, x, y, shape);
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_global_avg_pool_grad(const Call& call) {
  return call.launch([dy = call.in<T>(0), dx = call.out<T>(0), addend = call.addend<T>(),
                      shape = pixel_shape(call.output_shape(0))](cudaStream_t stream) {
    launch::global_avg_pool_grad<T>(stream, dy, dx, addend, shape);
  });
}

// `input` and `output` of the forward op: the output may have more channels.
launch::ShortcutShape shortcut_shape(const Call& call, const Shape& input, const Shape& output) {
  return {.batch = static_cast<std::uint32_t>(input[0]),
          .in_channels = static_cast<std::uint32_t>(input[1]),
          .in_height = static_cast<std::uint32_t>(input[2]),
          .in_width = static_cast<std::uint32_t>(input[3]),
          .out_channels = static_cast<std::uint32_t>(output[1]),
          .out_height = static_cast<std::uint32_t>(output[2]),
          .out_width = static_cast<std::uint32_t>(output[3]),
          .stride = static_cast<std::uint32_t>(call.attributes().integer("stride"))};
}

template <typename T>
std::unique_ptr<BoundKernel> bind_shortcut(const Call& call) {
  return call.launch([x = call.in<T>(0), y = call.out<T>(0),
                      shape = shortcut_shape(call, call.input_shape(0), call.output_shape(0))](cudaStream_t stream) {
    launch::shortcut<T>(stream, x, y, shape);
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_shortcut_grad(const Call& call) {
  return call.launch([dy = call.in<T>(0), dx = call.out<T>(0), addend = call.addend<T>(),
                      shape = shortcut_shape(call, call.output_shape(0), call.input_shape(0))](cudaStream_t stream) {
    launch::shortcut_grad<T>(stream, dy, dx, addend, shape);
  });
}

std::unique_ptr<BoundKernel> bind_copy(const Call& call) {
  return call.launch([from = call.in<std::byte>(0), to = call.out<std::byte>(0),
                      bytes = static_cast<std::size_t>(call.output_type(0).bytes().count())](cudaStream_t stream) {
    // A view: where the plan gives both the same bytes there is nothing to do.
    if (from != to) SNUG_CUDA_CALL(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream));
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_relayout(const Call& call) {
  if (call.input_type(0).layout == call.output_type(0).layout) return bind_copy(call);
  const Shape& shape = call.output_shape(0);
  const bool to_channels_last = call.output_type(0).layout.kind == Layout::Kind::channels_last;
  const std::int64_t example = shape.elements() / shape[0];
  const std::int64_t inner = to_channels_last ? shape[1] : example / shape[1];
  return call.launch([x = call.in<T>(0), y = call.out<T>(0), inner = static_cast<std::uint32_t>(inner),
                      example = static_cast<std::uint32_t>(example), count = call.elements()](cudaStream_t stream) {
    launch::transpose_examples<T>(stream, x, y, inner, example, count);
  });
}

constexpr Signature kToArgmax{.outputs = {Element::argmax}, .layouts = Layouts::images};
constexpr Signature kFromArgmax{.inputs = {Element::real, Element::argmax}, .layouts = Layouts::images};
constexpr Signature kImages{.layouts = Layouts::images};
constexpr Signature kAnyLayout{.layouts = Layouts::any};

}  // namespace

constinit const KernelDef max_pool = define<[]<typename T>() { return bind_max_pool<T>; }, kImages>("cuda_max_pool");
constinit const KernelDef max_pool_grad =
    define<[]<typename T>() { return bind_max_pool_grad<T>; }, kImages>("cuda_max_pool_grad");
constinit const KernelDef max_pool_argmax =
    define<[]<typename T>() { return bind_argmax<T>; }, kToArgmax>("cuda_max_pool_argmax");
constinit const KernelDef max_pool_grad_argmax =
    define<[]<typename T>() { return bind_max_pool_grad_argmax<T>; }, kFromArgmax>("cuda_max_pool_grad_argmax");
constinit const KernelDef avg_pool = define<[]<typename T>() { return bind_avg_pool<T>; }, kImages>("cuda_avg_pool");
constinit const KernelDef avg_pool_grad =
    define<[]<typename T>() { return bind_avg_pool_grad<T>; }, kImages>("cuda_avg_pool_grad");
constinit const KernelDef global_avg_pool =
    define<[]<typename T>() { return bind_global_avg_pool<T>; }, kImages>("cuda_global_avg_pool");
constinit const KernelDef global_avg_pool_grad =
    define<[]<typename T>() { return bind_global_avg_pool_grad<T>; }, kImages>("cuda_global_avg_pool_grad");
constinit const KernelDef shortcut = define<[]<typename T>() { return bind_shortcut<T>; }, kImages>("cuda_shortcut");
constinit const KernelDef shortcut_grad =
    define<[]<typename T>() { return bind_shortcut_grad<T>; }, kImages>("cuda_shortcut_grad");
constinit const KernelDef reshape = define<bind_copy, kAnyLayout>("cuda_reshape");
constinit const KernelDef relayout = define<[]<typename T>() { return bind_relayout<T>; }, kAnyLayout>("cuda_relayout");

}  // namespace snug::backends::cuda
