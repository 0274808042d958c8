#include "backends/cuda/pointwise/random.h"

#include <algorithm>

#include "backends/cuda/call.h"
#include "backends/cuda/kernels.h"
#include "base/error.h"
#include "ir/example_rows.h"

namespace snug::backends::cuda {

namespace {

launch::LogicalOrder logical_order(const Type& type) {
  const Shape& shape = type.shape;
  const bool in_order = type.layout.kind != Layout::Kind::channels_last || shape.rank() < 3;
  return {.example = static_cast<std::uint32_t>(shape.elements() / shape[0]),
          .channels = in_order ? 0 : static_cast<std::uint32_t>(shape[1])};
}

std::uint64_t key_of(const Call& call) { return static_cast<std::uint64_t>(call.attributes().integer("key")); }

template <typename T>
std::unique_ptr<BoundKernel> bind_dropout(const Call& call) {
  return call.launch([x = call.in<T>(0), y = call.out<T>(0), scalars = call.scalars(1),
                      probability = call.attributes().real("probability"), key = key_of(call),
                      draws = static_cast<std::uint64_t>(elements_per_example(call.output_type(0), call.attributes())),
                      order = logical_order(call.output_type(0)), count = call.elements()](cudaStream_t stream) {
    launch::dropout<T>(stream, x, y, scalars, probability, key, draws, order, count);
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_fill(const Call& call) {
  return call.launch([w = call.out<T>(0), value = call.attributes().real("value"), count = call.elements()](cudaStream_t stream) {
    launch::fill<T>(stream, w, value, count);
  });
}

std::unique_ptr<BoundKernel> bind_fill_metrics(const Call& call) { return bind_fill<double>(call); }
std::unique_ptr<BoundKernel> bind_fill_codes(const Call& call) { return bind_fill<std::uint8_t>(call); }

template <typename T>
std::unique_ptr<BoundKernel> bind_init_normal(const Call& call) {
  return call.launch([w = call.out<T>(0), scalars = call.scalars(1), std = call.attributes().real("std"), key = key_of(call),
                      order = logical_order(call.output_type(0)), count = call.elements()](cudaStream_t stream) {
    launch::init_normal<T>(stream, w, scalars, std, key, order, count);
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_init_uniform(const Call& call) {
  return call.launch([w = call.out<T>(0), scalars = call.scalars(1), bound = call.attributes().real("bound"), key = key_of(call),
                      order = logical_order(call.output_type(0)), count = call.elements()](cudaStream_t stream) {
    launch::init_uniform<T>(stream, w, scalars, bound, key, order, count);
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_image_input(const Call& call) {
  const Shape& shape = call.output_shape(0);
  launch::ImageConstants constants{.mean = {},
                                   .deviation = {},
                                   .channels = static_cast<std::uint32_t>(shape[1]),
                                   .height = static_cast<std::uint32_t>(shape[2]),
                                   .width = static_cast<std::uint32_t>(shape[3]),
                                   .padding = call.attributes().integer("padding"),
                                   .augment = call.attributes().integer("augment") != 0};
  std::ranges::copy(call.attributes().reals("mean"), constants.mean);
  std::ranges::copy(call.attributes().reals("std"), constants.deviation);
  return call.launch(
      [images = call.in<std::uint8_t>(0), y = call.out<T>(0), scalars = call.scalars(1), constants,
       count = call.elements()](cudaStream_t stream) { launch::image_input<T>(stream, images, y, scalars, constants, count); });
}

constexpr Signature kDropout{.inputs = {Element::real, Element::scalars}};
constexpr Signature kDrawn{.inputs = {Element::real, Element::scalars}};
constexpr Signature kMetrics{.inputs = {Element::metrics}, .outputs = {Element::metrics}};
constexpr Signature kCodes{.inputs = {Element::codes}, .outputs = {Element::codes}};
constexpr Signature kImages{.inputs = {Element::image_bytes, Element::scalars}, .layouts = Layouts::images};

KernelMatch match_image_input(const KernelQuery& query) {
  if (query.inputs[0].shape[1] > launch::kMaxImageChannels) {
    return Refuse{fmt::format("images of {} channels are more than the {} possible here", query.inputs[0].shape[1],
                              launch::kMaxImageChannels)};
  }
  return match_operands(kImages, no_workspace, query);
}

consteval KernelDef define_image_input() {
  KernelDef kernel = define<[]<typename T>() { return bind_image_input<T>; }, kImages>("cuda_image_input");
  kernel.match = match_image_input;
  return kernel;
}

}  // namespace

constinit const KernelDef dropout = define<[]<typename T>() { return bind_dropout<T>; }, kDropout>("cuda_dropout");
constinit const KernelDef fill = define<[]<typename T>() { return bind_fill<T>; }>("cuda_fill");
constinit const KernelDef fill_metrics = define<bind_fill_metrics, kMetrics>("cuda_fill_metrics", "fill");
constinit const KernelDef fill_codes = define<bind_fill_codes, kCodes>("cuda_fill_codes", "fill");
constinit const KernelDef init_normal = define<[]<typename T>() { return bind_init_normal<T>; }, kDrawn>("cuda_init_normal");
constinit const KernelDef init_uniform = define<[]<typename T>() { return bind_init_uniform<T>; }, kDrawn>("cuda_init_uniform");
constinit const KernelDef image_input = define_image_input();

}  // namespace snug::backends::cuda
