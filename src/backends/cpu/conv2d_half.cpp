#include <algorithm>
#include <array>
#include <optional>

#include "backends/cpu/conv2d.h"
#include "backends/cpu/convolution.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/simd.h"
#include "backends/cpu/simd_loops.h"
#include "ops/ops.h"

// Convolutions of numbers of 16 bits that the processor does not compute with: the weight and a few images at a time become
// floats in the workspace, oneDNN's kernels for floats do the work, and the result is rounded. Of these the one with the least
// workspace is taken: who stores 16 bits wants few bytes.

namespace snug::backends::cpu {

namespace {

bool is_half(const Type& type) { return is_dense_real(type) && bits_per_element(type.dtype) == 16; }

Type with_dim(Type type, std::size_t dim, std::int64_t size) {
  std::vector<std::int64_t> dims(type.shape.dims().begin(), type.shape.dims().end());
  if (type.layout.kind == Layout::Kind::opaque) {
    type.layout.opaque_bytes = Bytes(type.layout.opaque_bytes.count() / dims[dim] * size);
  }
  dims[dim] = size;
  type.shape = Shape(std::span<const std::int64_t>(dims));
  return type;
}

std::int64_t image_elements(const Type& type) { return type.elements() / type.shape[0]; }

// About as many images as take the room of the weight, read and written ones together.
std::int64_t images_at_a_time(const Type& weight, const Type& a, const Type& b) {
  return std::clamp<std::int64_t>(stored_elements(weight) / (image_elements(a) + image_elements(b)), 1, a.shape[0]);
}

struct Choice {
  const KernelDef* kernel;
  Bytes workspace;
};

// Of the kernels for floats the one that needs the least; nothing when all refuse.
std::optional<Choice> least_workspace(std::span<const KernelDef* const> kernels, const KernelQuery& query) {
  std::optional<Choice> best;
  for (const KernelDef* kernel : kernels) {
    const KernelMatch match = kernel->match(query);
    const auto* accept = std::get_if<Accept>(&match);
    if (accept != nullptr && (!best || accept->workspace < best->workspace)) best = Choice{kernel, accept->workspace};
  }
  return best;
}

// One of the products on floats, for a number of images.
struct Product {
  Attributes attributes;
  std::vector<Type> inputs;
  Type output;

  std::optional<Choice> choose(std::span<const KernelDef* const> kernels, const OpDef& op, int threads) const {
    return least_workspace(
        kernels,
        {.op = op, .attributes = attributes, .inputs = inputs, .outputs = {&output, 1}, .threads = threads, .device = nullptr});
  }
  std::shared_ptr<BoundKernel> bind(const KernelDef& kernel, const std::vector<std::byte*>& data, std::byte* result,
                                    std::span<std::byte> workspace, int threads) const {
    std::vector<Operand> operands;
    for (std::size_t i = 0; i < inputs.size(); ++i) operands.push_back({.type = inputs[i], .data = data[i]});
    const Operand out{.type = output, .data = result};
    return kernel.bind({.attributes = attributes,
                        .inputs = operands,
                        .outputs = {&out, 1},
                        .workspace = workspace,
                        .threads = threads,
                        .device = nullptr});
  }
};

constexpr std::array<const KernelDef*, 1> kForward{&onednn_conv2d};
constexpr std::array<const KernelDef*, 3> kGradInput{&onednn_conv2d_grad_input, &onednn_conv2d_grad_input_quarters,
                                                     &onednn_conv2d_grad_input_blocks};
constexpr std::array<const KernelDef*, 1> kGradWeight{&onednn_conv2d_grad_weight};

std::unique_ptr<BoundKernel> run_again(std::shared_ptr<BoundKernel> kernel) {
  return make_bound([kernel = std::move(kernel)] { kernel->run(); });
}

std::byte* at(const Operand& operand, std::int64_t element) {
  return operand.data + element * bits_per_element(operand.type.dtype) / 8;
}

float* floats_at(std::byte* data) { return reinterpret_cast<float*>(data); }

// A quarter of the channels, in whole blocks of the layouts; all where that does not come out even.
std::int64_t quarter_of(std::int64_t channels) {
  constexpr std::int64_t kBlock = 16;
  const std::int64_t quarter = (channels / 4 + kBlock - 1) / kBlock * kBlock;
  return channels % kBlock == 0 && channels % quarter == 0 ? quarter : channels;
}

// A slice of each pixel's channels: as floats, or back.
template <typename T>
std::unique_ptr<BoundKernel> gather(const T* all, std::int64_t channels, std::int64_t width, float* alone, std::int64_t pixels,
                                    int threads) {
  return make_bound([=] {
    for_each_part(pixels, threads, 1, [&](int, Range part) {
      for (std::int64_t p = part.begin; p < part.end; ++p)
        simd::element_loops<T>().widen(all + p * channels, alone + p * width, width);
    });
  });
}

template <typename T>
std::unique_ptr<BoundKernel> scatter(const float* alone, std::int64_t width, T* all, std::int64_t channels, std::int64_t pixels,
                                     int threads) {
  return make_bound([=] {
    for_each_part(pixels, threads, 1, [&](int, Range part) {
      for (std::int64_t p = part.begin; p < part.end; ++p)
        simd::element_loops<T>().narrow(alone + p * width, all + p * channels, width);
    });
  });
}

// ---- forward (x, w, bias?) -> y and data gradient (dy, w) -> dx: images in, a slice of the result's channels out at a time

struct ImageProduct {
  const OpDef* op;
  std::span<const KernelDef* const> kernels;
  std::vector<Type> inputs;  // of 16 bits
  Type output;
  Attributes attributes;
  std::size_t sliced_dim;  // of the weight: its output channels, or its input channels
  std::int64_t width;      // channels of a slice
  std::int64_t group;      // images at a time

  ImageProduct(const OpDef& of_node, std::vector<Type> input_types, const Type& output_type, const Attributes& of_op)
      : op(&of_node),
        inputs(std::move(input_types)),
        output(output_type),
        attributes(of_op),
        sliced_dim(op == &ops::conv2d ? 0 : 1) {
    if (op == &ops::conv2d) {
      kernels = kForward;
    } else {
      kernels = kGradInput;
    }
    // Output channels lie outermost in every layout that weights are kept in, input channels in blocks in this one.
    const bool can_slice = attributes.integer("groups") == 1 && (sliced_dim == 0 || inputs[1].layout.opaque_name == "ABcd16b16a");
    width = can_slice ? quarter_of(output.shape[1]) : output.shape[1];
    group = images_at_a_time(weight_slice(), inputs[0], with_dim(output, 1, width));
  }

  Type weight_slice() const { return can_slice() ? with_dim(inputs[1], sliced_dim, width) : inputs[1]; }
  bool can_slice() const { return width != output.shape[1]; }
  std::int64_t rest() const { return inputs[0].shape[0] % group; }

  Product of(std::int64_t images) const {
    Product product{.attributes = attributes, .inputs = {}, .output = as_floats(with_dim(with_dim(output, 1, width), 0, images))};
    product.inputs.push_back(as_floats(with_dim(inputs[0], 0, images)));
    product.inputs.push_back(as_floats(weight_slice()));
    if (inputs.size() == 3) product.inputs.push_back(as_floats(with_dim(inputs[2], 0, width)));
    if (attributes.has("input_shape")) {
      const auto dims = product.output.shape.dims();
      product.attributes.set("input_shape", std::vector<std::int64_t>(dims.begin(), dims.end()));
    }
    return product;
  }
};

struct ImagePieces {
  std::vector<std::byte*> inputs;
  std::byte* output;
};

ImagePieces cut(const ImageProduct& product, WorkspaceCutter& cutter) {
  const Product whole = product.of(product.group);
  ImagePieces pieces;
  for (const Type& type : whole.inputs) pieces.inputs.push_back(cutter.cut(type.bytes()));
  pieces.output = cutter.cut(whole.output.bytes());
  return pieces;
}

std::optional<std::string> objection_to(std::span<const Type> inputs, std::span<const Type> outputs) {
  for (const auto& types : {inputs, outputs}) {
    for (const Type& type : types) {
      if (!is_half(type)) return to_string(type) + " is not bf16 or f16";
      if (type.shape.rank() == 4 && type.layout.kind == Layout::Kind::row_major && type != inputs[1])
        return to_string(type) + " is not channels last";
    }
  }
  return std::nullopt;
}

KernelMatch match_images(const KernelQuery& query) {
  if (accumulates(query.attributes)) return Refuse{"the result would not be rounded before it is added to a sum"};
  if (auto reason = objection_to(query.inputs, query.outputs)) return Refuse{*reason};
  const ImageProduct product(query.op, {query.inputs.begin(), query.inputs.end()}, query.outputs[0], query.attributes);
  Bytes most;
  for (const std::int64_t images : {product.group, product.rest()}) {
    if (images == 0) continue;
    const auto choice = product.of(images).choose(product.kernels, query.op, query.threads);
    if (!choice) return Refuse{"oneDNN has no such convolution of floats"};
    most = std::max(most, choice->workspace);
  }
  WorkspaceCutter cutter;
  cut(product, cutter);
  return Accept{.workspace = cutter.used() + round_up(most, kAlignment), .numerics = "half"};
}

// The weights of channels [channel, channel + width), as floats.
void add_weight_slice(PrimitiveChain& chain, const ImageProduct& product, const Operand& weight, std::int64_t channel,
                      float* target, int threads) {
  const std::int64_t channels = weight.type.shape[product.sliced_dim];
  const std::int64_t all = stored_elements(weight.type);
  if (product.sliced_dim == 0 || !product.can_slice()) {
    const std::int64_t count = product.can_slice() ? all / channels * product.width : all;
    const std::int64_t begin = product.can_slice() ? all / channels * channel : 0;
    chain.add_action(widen_elements(weight.type.dtype, at(weight, begin), target, count, threads));
    return;
  }
  // Blocks of input channels, one after the other within each block of output channels.
  constexpr std::int64_t kBlock = 16;
  const std::int64_t blocks = (weight.type.shape[0] + kBlock - 1) / kBlock;
  const std::int64_t run = all / blocks / channels * product.width;
  const std::int64_t first = all / blocks / channels * channel;
  for (std::int64_t block = 0; block < blocks; ++block) {
    chain.add_action(
        widen_elements(weight.type.dtype, at(weight, block * (all / blocks) + first), target + block * run, run, threads));
  }
}

template <typename T>
std::unique_ptr<BoundKernel> bind_images_as(const KernelArguments& arguments, const OpDef& op) {
  const int threads = arguments.threads;
  const ImageProduct product(op, types_of(arguments.inputs), arguments.outputs[0].type, arguments.attributes);
  WorkspaceCutter cutter(arguments.workspace.data());
  const ImagePieces pieces = cut(product, cutter);
  const auto workspace = arguments.workspace.subspan(static_cast<std::size_t>(cutter.used().count()));
  const auto bind = [&](std::int64_t images) -> std::shared_ptr<BoundKernel> {
    if (images == 0) return nullptr;
    const Product part = product.of(images);
    return part.bind(*part.choose(product.kernels, op, threads)->kernel, pieces.inputs, pieces.output, workspace, threads);
  };
  const std::shared_ptr<BoundKernel> whole = bind(product.group);
  const std::shared_ptr<BoundKernel> rest = bind(product.rest());
  auto chain = std::make_unique<PrimitiveChain>();
  const Operand& from = arguments.inputs[0];
  const Operand& to = arguments.outputs[0];
  const std::int64_t batch = from.type.shape[0];
  const std::int64_t channels = to.type.shape[1];
  const std::int64_t in = image_elements(from.type);
  const std::int64_t out = image_elements(to.type);
  for (std::int64_t channel = 0; channel < channels; channel += product.width) {
    add_weight_slice(*chain, product, arguments.inputs[1], channel, floats_at(pieces.inputs[1]), threads);
    if (product.inputs.size() == 3) {
      const Operand& bias = arguments.inputs[2];
      chain->add_action(widen_elements(bias.type.dtype, at(bias, channel), floats_at(pieces.inputs[2]), product.width, threads));
    }
    for (std::int64_t first = 0; first < batch; first += product.group) {
      const std::int64_t images = std::min(product.group, batch - first);
      chain->add_action(widen_elements(from.type.dtype, at(from, first * in), floats_at(pieces.inputs[0]), images * in, threads));
      chain->add_action(run_again(images == product.group ? whole : rest));
      chain->add_action(scatter<T>(floats_at(pieces.output), product.width, elements<T>(to) + first * out + channel, channels,
                                   images * out / channels, threads));
    }
  }
  return chain;
}

template <const OpDef& Op>
std::unique_ptr<BoundKernel> bind_images(const KernelArguments& arguments) {
  return with_storage(arguments.outputs[0].type.dtype,
                      [&]<typename T>(T /*tag*/) -> std::unique_ptr<BoundKernel> { return bind_images_as<T>(arguments, Op); });
}

// ---- weight gradient: (dy, x, sum?) -> dw, a quarter of the output channels at a time where they lie one after the other

struct WeightProduct {
  Type dy, x, dw;
  Attributes attributes;
  std::int64_t width;  // output channels at a time
  std::int64_t group;  // images at a time

  WeightProduct(const Type& dy_type, const Type& x_type, const Type& dw_type, Attributes of_node)
      : dy(dy_type), x(x_type), dw(dw_type), attributes(std::move(of_node)) {
    attributes.erase(kAccumulate);
    width = attributes.integer("groups") == 1 ? quarter_of(dw.shape[0]) : dw.shape[0];
    group = images_at_a_time(with_dim(dw, 0, width), with_dim(dy, 1, width), x);
  }
  std::int64_t rest() const { return x.shape[0] % group; }
  Type dw_slice() const { return with_dim(dw, 0, width); }
  Type dy_slice(std::int64_t images) const { return with_dim(with_dim(dy, 1, width), 0, images); }

  Product of(std::int64_t images, bool adds) const {
    const Type total = as_floats(dw_slice());
    Product product{
        .attributes = attributes, .inputs = {as_floats(dy_slice(images)), as_floats(with_dim(x, 0, images))}, .output = total};
    if (adds) product.attributes.set(kAccumulate, std::int64_t{1});
    if (adds) product.inputs.push_back(total);
    return product;
  }
};

struct WeightPieces {
  std::byte *dy, *x, *total;
};

WeightPieces cut(const WeightProduct& product, WorkspaceCutter& cutter) {
  const Product whole = product.of(product.group, false);
  return {.dy = cutter.cut(whole.inputs[0].bytes()),
          .x = cutter.cut(whole.inputs[1].bytes()),
          .total = cutter.cut(whole.output.bytes())};
}

KernelMatch match_grad_weight(const KernelQuery& query) {
  for (const Type& type : query.inputs) {
    if (!is_half(type)) return Refuse{to_string(type) + " is not bf16 or f16"};
  }
  for (const Type& type : query.inputs.first(2)) {
    if (type.layout.kind != Layout::Kind::channels_last) return Refuse{to_string(type) + " is not channels last"};
  }
  const WeightProduct product(query.inputs[0], query.inputs[1], query.outputs[0], query.attributes);
  Bytes most;
  for (const std::int64_t images : {product.group, product.rest()}) {
    for (const bool adds : {false, true}) {
      if (images == 0) continue;
      const auto choice = product.of(images, adds).choose(kGradWeight, query.op, query.threads);
      if (!choice) return Refuse{"oneDNN has no such convolution of floats"};
      most = std::max(most, choice->workspace);
    }
  }
  WorkspaceCutter cutter;
  cut(product, cutter);
  return Accept{.workspace = cutter.used() + round_up(most, kAlignment), .numerics = "half"};
}

template <typename T>
std::unique_ptr<BoundKernel> bind_grad_weight_as(const KernelArguments& arguments) {
  const int threads = arguments.threads;
  const Operand& dy = arguments.inputs[0];
  const Operand& x = arguments.inputs[1];
  const Operand& dw = arguments.outputs[0];
  const WeightProduct product(dy.type, x.type, dw.type, arguments.attributes);
  WorkspaceCutter cutter(arguments.workspace.data());
  const WeightPieces pieces = cut(product, cutter);
  const auto workspace = arguments.workspace.subspan(static_cast<std::size_t>(cutter.used().count()));
  const auto bind = [&](std::int64_t images, bool adds) -> std::shared_ptr<BoundKernel> {
    if (images == 0) return nullptr;
    const Product part = product.of(images, adds);
    return part.bind(*part.choose(kGradWeight, ops::conv2d_grad_weight, threads)->kernel, {pieces.dy, pieces.x, pieces.total},
                     pieces.total, workspace, threads);
  };
  const auto first_whole = bind(product.group, false);
  const auto whole = bind(product.group, true);
  const auto rest = bind(product.rest(), true);
  auto chain = std::make_unique<PrimitiveChain>();
  const std::int64_t channels = dw.type.shape[0];
  const std::int64_t batch = x.type.shape[0];
  const std::int64_t pixels = image_elements(dy.type) / channels;
  const std::int64_t slice = stored_elements(product.dw_slice());
  for (std::int64_t channel = 0; channel < channels; channel += product.width) {
    for (std::int64_t first = 0; first < batch; first += product.group) {
      const std::int64_t images = std::min(product.group, batch - first);
      chain->add_action(gather<T>(elements<T>(dy) + first * image_elements(dy.type) + channel, channels, product.width,
                                  floats_at(pieces.dy), images * pixels, threads));
      const std::int64_t in = image_elements(x.type);
      chain->add_action(widen_elements(x.type.dtype, at(x, first * in), floats_at(pieces.x), images * in, threads));
      chain->add_action(run_again(first == 0 ? first_whole : images == product.group ? whole : rest));
    }
    const std::int64_t begin = channel / product.width * slice;
    if (accumulates(arguments.attributes)) {
      chain->add_action(
          add_floats(dw.type.dtype, at(arguments.inputs[2], begin), floats_at(pieces.total), at(dw, begin), slice, threads));
    } else {
      chain->add_action(narrow_elements(dw.type.dtype, floats_at(pieces.total), at(dw, begin), slice, threads));
    }
  }
  return chain;
}

std::unique_ptr<BoundKernel> bind_grad_weight(const KernelArguments& arguments) {
  return with_storage(arguments.outputs[0].type.dtype,
                      [&]<typename T>(T /*tag*/) -> std::unique_ptr<BoundKernel> { return bind_grad_weight_as<T>(arguments); });
}

}  // namespace

constinit const KernelDef half_conv2d{
    .name = "half_conv2d", .op = "conv2d", .match = match_images, .bind = bind_images<ops::conv2d>};
constinit const KernelDef half_conv2d_grad_input{.name = "half_conv2d_grad_input",
                                                 .op = "conv2d_grad_input",
                                                 .match = match_images,
                                                 .bind = bind_images<ops::conv2d_grad_input>};
constinit const KernelDef half_conv2d_grad_weight{
    .name = "half_conv2d_grad_weight", .op = "conv2d_grad_weight", .match = match_grad_weight, .bind = bind_grad_weight};

}  // namespace snug::backends::cpu
