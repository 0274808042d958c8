#include "backends/cpu/half/conv2d.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/onednn/conv2d.h"
#include "backends/cpu/storage.h"

// The kernels for dense 16-bit weights: each in three sizes, the fastest first.

namespace snug::backends::cpu {

namespace {

std::optional<std::string> objection_to(std::span<const Type> inputs, std::span<const Type> outputs) {
  for (const auto& types : {inputs, outputs}) {
    for (const Type& type : types) {
      if (!is_16_bits(type)) return to_string(type) + " is not bf16 or f16";
    }
  }
  return std::nullopt;
}

std::optional<std::string> objection_to_images(const Type& type) {
  if (type.layout.kind != Layout::Kind::channels_last) return to_string(type) + " is not channels last";
  return std::nullopt;
}

// ---- forward (x, w, bias?) -> y and data gradient (dy, w) -> dx

HalfImages::Call call_of(bool forward, std::span<const Type> inputs, const Type& output, const Attributes& attributes) {
  return {.forward = forward,
          .from = inputs[0],
          .weight = inputs[1],
          .to = output,
          .bias = inputs.size() == 3 ? std::optional(inputs[2]) : std::nullopt,
          .attributes = attributes};
}

template <bool Forward, HalfRoom Room>
KernelMatch match_images(const KernelQuery& query) {
  if (accumulates(query.attributes)) return Refuse{"the result would not be rounded before it is added to a sum"};
  if (auto reason = objection_to(query.inputs, query.outputs)) return Refuse{*reason};
  for (const Type* type : {&query.inputs[0], &query.outputs[0]}) {
    if (auto reason = objection_to_images(*type)) return Refuse{*reason};
  }
  try {
    const HalfImages images(call_of(Forward, query.inputs, query.outputs[0], query.attributes), Room, query.threads);
    return accept_half(Room, images.workspace(), images.is_reference(), query.inputs[0].dtype, query.threads);
  } catch (const dnnl::error& error) {
    return Refuse{fmt::format("oneDNN: {}", error.message)};
  }
}

template <bool Forward, HalfRoom Room>
std::unique_ptr<BoundKernel> bind_images(const KernelArguments& arguments) {
  const int threads = arguments.threads;
  const Operand& weight = arguments.inputs[1];
  const HalfImages images(call_of(Forward, types_of(arguments.inputs), arguments.outputs[0].type, arguments.attributes), Room,
                          threads);
  const std::size_t dim = Forward ? 0 : 1;
  return images.bind(arguments.inputs[0], arguments.outputs[0], arguments.inputs.size() == 3 ? &arguments.inputs[2] : nullptr,
                     arguments.workspace.data(), [&](float* target) {
                       return widen_weights(weight, images.groups(), dim, images.weight_layout(), target, threads);
                     });
}

// ---- weight gradient: (dy, x, sum?) -> dw

template <HalfRoom Room>
KernelMatch match_grad_weight(const KernelQuery& query) {
  if (auto reason = objection_to(query.inputs, query.outputs)) return Refuse{*reason};
  for (const Type& type : query.inputs.first(2)) {
    if (auto reason = objection_to_images(type)) return Refuse{*reason};
  }
  try {
    const HalfWeightGradient gradient(query.inputs[0], query.inputs[1], query.outputs[0], query.attributes, Room, query.threads);
    return accept_half(Room, gradient.workspace(), gradient.is_reference(), query.inputs[0].dtype, query.threads);
  } catch (const dnnl::error& error) {
    return Refuse{fmt::format("oneDNN: {}", error.message)};
  }
}

template <HalfRoom Room>
std::unique_ptr<BoundKernel> bind_grad_weight(const KernelArguments& arguments) {
  const int threads = arguments.threads;
  const Operand& dy = arguments.inputs[0];
  const Operand& x = arguments.inputs[1];
  const Operand& dw = arguments.outputs[0];
  const HalfWeightGradient gradient(dy.type, x.type, dw.type, arguments.attributes, Room, threads);
  const ChannelSlices& slices = gradient.slices();
  Type slice = dw.type;
  std::vector<std::int64_t> dims(slice.shape.dims().begin(), slice.shape.dims().end());
  dims[0] = slices.width;
  dims[1] = gradient.input_slices().is_whole() ? dims[1] : gradient.input_slices().width;
  slice.shape = Shape(std::span<const std::int64_t>(dims));
  // Output channels lie outermost in every layout that weights are kept in.
  // Blocks of input channels follow within a block of these.
  const std::int64_t bytes_a_channel = dw.type.bytes().count() / slices.channels;
  const std::int64_t bytes_an_input = bytes_a_channel / gradient.input_slices().channels * slices.width;
  const std::byte* sum = accumulates(arguments.attributes) ? arguments.inputs[2].data : nullptr;
  return gradient.bind(dy, x, arguments.workspace.data(), [&](const float* fresh) -> HalfWeightGradient::TakeGradient {
    return [=, out = dw.data, place = gradient_placer(gradient.gradient_layout(), fresh, slice, gradient.groups(), threads)](
               std::int64_t first, std::int64_t first_in) {
      const std::int64_t begin = first * bytes_a_channel + first_in * bytes_an_input;
      place(sum == nullptr ? nullptr : sum + begin, out + begin);
    };
  });
}

template <bool Forward, HalfRoom Room>
constexpr KernelDef images_kernel(std::string_view name) {
  return {.name = name,
          .op = Forward ? "conv2d" : "conv2d_grad_input",
          .match = match_images<Forward, Room>,
          .bind = bind_images<Forward, Room>};
}

template <HalfRoom Room>
constexpr KernelDef weight_kernel(std::string_view name) {
  return {.name = name, .op = "conv2d_grad_weight", .match = match_grad_weight<Room>, .bind = bind_grad_weight<Room>};
}

}  // namespace

constinit const KernelDef half_conv2d = images_kernel<true, HalfRoom::fast>("half_conv2d");
constinit const KernelDef half_conv2d_small = images_kernel<true, HalfRoom::small>("half_conv2d_small");
constinit const KernelDef half_conv2d_least = images_kernel<true, HalfRoom::least>("half_conv2d_least");
constinit const KernelDef half_conv2d_grad_input = images_kernel<false, HalfRoom::fast>("half_conv2d_grad_input");
constinit const KernelDef half_conv2d_grad_input_small = images_kernel<false, HalfRoom::small>("half_conv2d_grad_input_small");
constinit const KernelDef half_conv2d_grad_input_least = images_kernel<false, HalfRoom::least>("half_conv2d_grad_input_least");
constinit const KernelDef half_conv2d_grad_weight = weight_kernel<HalfRoom::fast>("half_conv2d_grad_weight");
constinit const KernelDef half_conv2d_grad_weight_small = weight_kernel<HalfRoom::small>("half_conv2d_grad_weight_small");
constinit const KernelDef half_conv2d_grad_weight_least = weight_kernel<HalfRoom::least>("half_conv2d_grad_weight_least");

}  // namespace snug::backends::cpu
