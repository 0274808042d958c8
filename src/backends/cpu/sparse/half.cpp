#include "backends/cpu/half/conv2d.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/sparse/conv2d.h"
#include "backends/cpu/sparse/expansion.h"

// Sparse f16 weights, as in conv2d.cpp: expanded in the workspace, here to floats, for the
// convolutions of half/conv2d.cpp.

namespace snug::backends::cpu {

namespace {

Type dense_weight(const Attributes& attributes) {
  return {.dtype = DType::f16, .shape = ops::SparseSlot::from(attributes).shape, .layout = Layout::channels_last()};
}

std::optional<std::string> objection_to(std::initializer_list<const Type*> reals, std::initializer_list<const Type*> images) {
  for (const Type* type : reals) {
    if (type->dtype != DType::f16) return to_string(*type) + " is not f16";
  }
  for (const Type* type : images) {
    if (type->layout.kind != Layout::Kind::channels_last) return to_string(*type) + " is not channels last";
  }
  return std::nullopt;
}

// The dense kernel's workspace and what a kernel of this file needs beside it.
Bytes with_tables(Bytes workspace, const Attributes& attributes) {
  WorkspaceCutter cutter;
  cutter.cut(workspace);
  cutter.cut(position_tables_size(whole_part(ops::SparseSlot::from(attributes), Operand{}, Operand{})));
  return cutter.used();
}

std::byte* tables_of(const KernelArguments& arguments, Bytes workspace) {
  return arguments.workspace.data() + round_up(workspace, kAlignment).count();
}

// ---- forward: (x, values, columns, rows, bias?) -> y, and data gradient: (dy, values, columns, rows) -> dx

template <bool Forward>
HalfImages product_of(std::span<const Type> inputs, const Type& output, const Attributes& attributes, int threads) {
  return HalfImages({.forward = Forward,
                     .from = inputs[0],
                     .weight = dense_weight(attributes),
                     .to = output,
                     .bias = inputs.size() == 5 ? std::optional(inputs[4]) : std::nullopt,
                     .attributes = attributes},
                    HalfRoom::fast, threads);
}

template <bool Forward>
KernelMatch match_images(const KernelQuery& query) {
  if (accumulates(query.attributes)) return Refuse{"the result would not be rounded before it is added to a sum"};
  const Type* bias = query.inputs.size() == 5 ? &query.inputs[4] : &query.inputs[1];
  if (auto reason =
          objection_to({&query.inputs[0], &query.inputs[1], &query.outputs[0], bias}, {&query.inputs[0], &query.outputs[0]}))
    return Refuse{*reason};
  try {
    const HalfImages product = product_of<Forward>(query.inputs, query.outputs[0], query.attributes, query.threads);
    return Accept{.workspace = with_tables(product.workspace(), query.attributes),
                  .numerics = "half",
                  .is_reference = product.is_reference()};
  } catch (const dnnl::error& error) {
    return Refuse{fmt::format("oneDNN: {}", error.message)};
  }
}

template <bool Forward>
std::unique_ptr<BoundKernel> bind_images(const KernelArguments& arguments) {
  const HalfImages product =
      product_of<Forward>(types_of(arguments.inputs), arguments.outputs[0].type, arguments.attributes, arguments.threads);
  const SparsePart part = whole_part(ops::SparseSlot::from(arguments.attributes), arguments.inputs[2], arguments.inputs[3]);
  std::byte* tables = tables_of(arguments, product.workspace());
  return product.bind(arguments.inputs[0], arguments.outputs[0], arguments.inputs.size() == 5 ? &arguments.inputs[4] : nullptr,
                      arguments.workspace.data(), [&](float* target) -> HalfImages::BringWeights {
                        std::shared_ptr<BoundKernel> expansion = expand_as_floats(
                            part, arguments.inputs[1], product.weight_layout(), target, tables, arguments.threads);
                        return [expansion = std::move(expansion)](std::int64_t /*first*/) { expansion->run(); };
                      });
}

// ---- weight gradient: (dy, x, columns, rows, sum?) -> gradient of the store

HalfWeightGradient gradient_of(const Type& dy, const Type& x, const Attributes& attributes, int threads) {
  return {dy, x, dense_weight(attributes), attributes, HalfRoom::fast, threads};
}

KernelMatch match_grad_weight(const KernelQuery& query) {
  if (auto reason = objection_to({&query.inputs[0], &query.inputs[1], &query.outputs[0]}, {&query.inputs[0], &query.inputs[1]}))
    return Refuse{*reason};
  try {
    const HalfWeightGradient gradient = gradient_of(query.inputs[0], query.inputs[1], query.attributes, query.threads);
    return Accept{.workspace = with_tables(gradient.workspace(), query.attributes),
                  .numerics = "half",
                  .is_reference = gradient.is_reference()};
  } catch (const dnnl::error& error) {
    return Refuse{fmt::format("oneDNN: {}", error.message)};
  }
}

std::unique_ptr<BoundKernel> bind_grad_weight(const KernelArguments& arguments) {
  const Operand& dy = arguments.inputs[0];
  const Operand& x = arguments.inputs[1];
  const HalfWeightGradient gradient = gradient_of(dy.type, x.type, arguments.attributes, arguments.threads);
  const SparsePart part = whole_part(ops::SparseSlot::from(arguments.attributes), arguments.inputs[2], arguments.inputs[3]);
  std::byte* tables = tables_of(arguments, gradient.workspace());
  auto chain = std::make_unique<PrimitiveChain>();
  chain->add_action(begin_gradient(arguments));
  chain->add_action(gradient.bind(dy, x, arguments.workspace.data(), [&](const float* fresh) -> HalfWeightGradient::TakeGradient {
    std::shared_ptr<BoundKernel> gathering =
        gather_gradient(part, gradient.gradient_layout(), reinterpret_cast<const std::byte*>(fresh),
                        arguments.outputs[0].type.dtype, arguments.outputs[0].data, tables, arguments.threads);
    return [gathering = std::move(gathering)](std::int64_t /*out*/, std::int64_t /*in*/) { gathering->run(); };
  }));
  return chain;
}

}  // namespace

constinit const KernelDef half_sparse_conv2d{
    .name = "half_sparse_conv2d", .op = "sparse_conv2d", .match = match_images<true>, .bind = bind_images<true>};
constinit const KernelDef half_sparse_conv2d_grad_input{.name = "half_sparse_conv2d_grad_input",
                                                        .op = "sparse_conv2d_grad_input",
                                                        .match = match_images<false>,
                                                        .bind = bind_images<false>};
constinit const KernelDef half_sparse_conv2d_grad_weight{.name = "half_sparse_conv2d_grad_weight",
                                                         .op = "sparse_conv2d_grad_weight",
                                                         .match = match_grad_weight,
                                                         .bind = bind_grad_weight};

}  // namespace snug::backends::cpu
