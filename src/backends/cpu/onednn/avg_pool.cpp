#include <fmt/format.h>

#include "backends/cpu/kernels.h"
#include "backends/cpu/onednn/onednn.h"
#include "ops/pool.h"

// Average pooling by oneDNN, whose kernels read and write channels-last values directly and need no scratch. Global pooling has
// one window as large as the image: its result [N,C] lies like an image of one pixel.

namespace snug::backends::cpu {

namespace {

using Dims = dnnl::memory::dims;

struct Windows {
  DType dtype = DType::f32;
  Dims images, pooled;  // logical: N,C,H,W
  Dims kernel, stride, padding;

  static Windows of_pool(const Type& type, const Attributes& attributes) {
    const auto g = ops::PoolGeometry::from(type.shape, attributes);
    return {.dtype = type.dtype,
            .images = {g.batch, g.channels, g.in_height, g.in_width},
            .pooled = {g.batch, g.channels, g.out_height, g.out_width},
            .kernel = {g.kernel_height, g.kernel_width},
            .stride = {g.stride_height, g.stride_width},
            .padding = {g.padding_height, g.padding_width}};
  }
  static Windows of_whole_image(const Type& type, const Attributes& /*attributes*/) {
    const Shape& input = type.shape;
    const Dims size{input[2], input[3]};
    return {.dtype = type.dtype,
            .images = {input[0], input[1], input[2], input[3]},
            .pooled = {input[0], input[1], 1, 1},
            .kernel = size,
            .stride = size,
            .padding = {0, 0}};
  }

  // Rows that the last window does not reach are negative padding.
  Dims rear_padding() const {
    Dims rear;
    for (std::size_t i = 0; i < 2; ++i) rear.push_back((pooled[i + 2] - 1) * stride[i] + kernel[i] - images[i + 2] - padding[i]);
    return rear;
  }

  bool overlap() const { return stride[0] < kernel[0] || stride[1] < kernel[1]; }

  dnnl::memory::desc channels_last(const Dims& dims) const { return {dims, data_type_of(dtype), dnnl::memory::format_tag::nhwc}; }
  dnnl::pooling_forward::primitive_desc forward() const {
    // Averages keep nothing for backward, so training needs no more than inference.
    return {{dnnl::prop_kind::forward_training, dnnl::algorithm::pooling_avg_include_padding, channels_last(images),
             channels_last(pooled), stride, kernel, padding, rear_padding()},
            booked_scratchpad(),
            engine()};
  }
  dnnl::pooling_backward::primitive_desc backward() const {
    return {{dnnl::algorithm::pooling_avg_include_padding, channels_last(images), channels_last(pooled), stride, kernel, padding,
             rear_padding()},
            booked_scratchpad(),
            engine(),
            forward()};
  }
};

using MakeWindows = Windows (*)(const Type& type, const Attributes&);

std::optional<std::string> objection_to(const Type& type) {
  if (auto reason = objection(type)) return reason;
  if (type.shape.rank() == 4 && type.layout.kind != Layout::Kind::channels_last) return to_string(type) + " is not channels last";
  return std::nullopt;
}

template <typename Describe>
KernelMatch match_described(const KernelQuery& query, const Describe& describe) {
  for (const auto& types : {query.inputs, query.outputs}) {
    for (const Type& type : types) {
      if (auto reason = objection_to(type)) return Refuse{*reason};
    }
  }
  try {
    const OmpThreads scope(query.threads);
    const auto description = describe();
    return Accept{.workspace = size_of(description.scratchpad_desc()), .is_reference = is_reference(description)};
  } catch (const dnnl::error& error) {
    return Refuse{fmt::format("oneDNN: {}", error.message)};
  }
}

template <MakeWindows Make>
KernelMatch match_forward(const KernelQuery& query) {
  return match_described(query, [&] { return Make(query.inputs[0], query.attributes).forward(); });
}

template <MakeWindows Make>
KernelMatch match_grad(const KernelQuery& query) {
  if (accumulates(query.attributes)) return Refuse{"oneDNN's pooling gradient cannot add to its output"};
  if (query.outputs[0].dtype == DType::bf16 && Make(query.outputs[0], query.attributes).overlap())
    return Refuse{"oneDNN adds up the gradients of overlapping windows in bf16"};
  return match_described(query, [&] { return Make(query.outputs[0], query.attributes).backward(); });
}

template <MakeWindows Make>
std::unique_ptr<BoundKernel> bind_forward(const KernelArguments& arguments) {
  const OmpThreads scope(arguments.threads);
  const auto description = Make(arguments.inputs[0].type, arguments.attributes).forward();
  auto chain = std::make_unique<PrimitiveChain>();
  chain->add(dnnl::pooling_forward(description),
             {{DNNL_ARG_SRC, memory_at(description.src_desc(), arguments.inputs[0].data)},
              {DNNL_ARG_DST, memory_at(description.dst_desc(), arguments.outputs[0].data)},
              {DNNL_ARG_SCRATCHPAD, memory_at(description.scratchpad_desc(), arguments.workspace.data())}});
  return chain;
}

template <MakeWindows Make>
std::unique_ptr<BoundKernel> bind_grad(const KernelArguments& arguments) {
  const OmpThreads scope(arguments.threads);
  const auto description = Make(arguments.outputs[0].type, arguments.attributes).backward();
  auto chain = std::make_unique<PrimitiveChain>();
  chain->add(dnnl::pooling_backward(description),
             {{DNNL_ARG_DIFF_DST, memory_at(description.diff_dst_desc(), arguments.inputs[0].data)},
              {DNNL_ARG_DIFF_SRC, memory_at(description.diff_src_desc(), arguments.outputs[0].data)},
              {DNNL_ARG_SCRATCHPAD, memory_at(description.scratchpad_desc(), arguments.workspace.data())}});
  return chain;
}

}  // namespace

constinit const KernelDef onednn_avg_pool{.name = "onednn_avg_pool",
                                          .op = "avg_pool",
                                          .match = match_forward<Windows::of_pool>,
                                          .bind = bind_forward<Windows::of_pool>};
constinit const KernelDef onednn_avg_pool_grad{.name = "onednn_avg_pool_grad",
                                               .op = "avg_pool_grad",
                                               .match = match_grad<Windows::of_pool>,
                                               .bind = bind_grad<Windows::of_pool>};
constinit const KernelDef onednn_global_avg_pool{.name = "onednn_global_avg_pool",
                                                 .op = "global_avg_pool",
                                                 .match = match_forward<Windows::of_whole_image>,
                                                 .bind = bind_forward<Windows::of_whole_image>};
constinit const KernelDef onednn_global_avg_pool_grad{.name = "onednn_global_avg_pool_grad",
                                                      .op = "global_avg_pool_grad",
                                                      .match = match_grad<Windows::of_whole_image>,
                                                      .bind = bind_grad<Windows::of_whole_image>};

}  // namespace snug::backends::cpu
