#include "backends/cpu/sparse/conv2d.h"

#include <algorithm>

#include "backends/cpu/kernels.h"
#include "backends/cpu/onednn/convolution.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/sparse/expansion.h"

// The weight is made dense in the workspace, in the layout that oneDNN's primitive wants, which then runs as in a dense model.
// That costs a few percent of the convolution's time, at any density.

namespace snug::backends::cpu {

namespace {

constexpr std::string_view kWhole = "onednn";

Type dense_weight(const Attributes& attributes, DType dtype) {
  return {.dtype = dtype, .shape = ops::SparseSlot::from(attributes).shape, .layout = Layout::channels_last()};
}

// Converts oneDNN's exceptions, and values that it cannot take, to refusals; the store's own operands are not for oneDNN.
template <typename Accepting>
KernelMatch match_reals(const KernelQuery& query, std::initializer_list<const Type*> reals, const Accepting& accepting) {
  for (const Type* type : reals) {
    if (auto reason = objection(*type)) return Refuse{*reason};
  }
  try {
    const OmpThreads scope(query.threads);
    return accepting();
  } catch (const dnnl::error& error) {
    return Refuse{fmt::format("oneDNN: {}", error.message)};
  }
}

// Pieces of the workspace: the dense weight or gradient, tables of positions, the primitive's own scratch.
struct Pieces {
  std::byte *dense, *tables, *scratchpad;
};

Pieces cut(WorkspaceCutter& cutter, const SparsePart& part, const dnnl::memory::desc& weights,
           const dnnl::memory::desc& scratchpad) {
  return {.dense = cutter.cut(size_of(weights)),
          .tables = cutter.cut(position_tables_size(part)),
          .scratchpad = cutter.cut(size_of(scratchpad))};
}

SparsePart part_of_call(const Attributes& attributes) {
  return whole_part(ops::SparseSlot::from(attributes), Operand{}, Operand{});
}

// ---- forward: (x, values, columns, rows, bias?) -> y

dnnl::convolution_forward::primitive_desc describe_forward(const Type& x, const Type& y, const Type* bias,
                                                           const Attributes& attributes) {
  const Convolution conv(x, dense_weight(attributes, x.dtype), y, attributes);
  if (bias == nullptr) return conv.forward(conv.any_weight());
  const dnnl::memory::desc described = descriptor(*bias);
  return conv.forward(conv.any_weight(), &described);
}

KernelMatch match_forward(const KernelQuery& query) {
  return match_reals(query, {&query.inputs[0], &query.inputs[1], &query.outputs[0]}, [&]() -> KernelMatch {
    const Type* bias = query.inputs.size() == 5 ? &query.inputs[4] : nullptr;
    const auto description = describe_forward(query.inputs[0], query.outputs[0], bias, query.attributes);
    WorkspaceCutter cutter;
    cut(cutter, part_of_call(query.attributes), description.weights_desc(), description.scratchpad_desc());
    return Accept{.workspace = cutter.used(), .numerics = kWhole, .is_reference = is_reference(description)};
  });
}

std::unique_ptr<BoundKernel> bind_forward(const KernelArguments& arguments) {
  const OmpThreads scope(arguments.threads);
  const Type* bias = arguments.inputs.size() == 5 ? &arguments.inputs[4].type : nullptr;
  const auto description = describe_forward(arguments.inputs[0].type, arguments.outputs[0].type, bias, arguments.attributes);
  const SparsePart part = whole_part(ops::SparseSlot::from(arguments.attributes), arguments.inputs[2], arguments.inputs[3]);
  WorkspaceCutter cutter(arguments.workspace.data());
  const Pieces pieces = cut(cutter, part, description.weights_desc(), description.scratchpad_desc());
  auto chain = std::make_unique<PrimitiveChain>();
  chain->add_action(
      expand(part, arguments.inputs[1].data, description.weights_desc(), pieces.dense, pieces.tables, arguments.threads));
  std::vector<std::pair<int, dnnl::memory>> list{
      {DNNL_ARG_SRC, memory_at(description.src_desc(), arguments.inputs[0].data)},
      {DNNL_ARG_WEIGHTS, memory_at(description.weights_desc(), pieces.dense)},
      {DNNL_ARG_DST, memory_at(description.dst_desc(), arguments.outputs[0].data)},
      {DNNL_ARG_SCRATCHPAD, memory_at(description.scratchpad_desc(), pieces.scratchpad)}};
  if (bias != nullptr) list.emplace_back(DNNL_ARG_BIAS, memory_at(description.bias_desc(), arguments.inputs[4].data));
  chain->add(dnnl::convolution_forward(description), list);
  return chain;
}

// ---- data gradient: (dy, values, columns, rows) -> dx

dnnl::convolution_backward_data::primitive_desc describe_grad_input(const Type& dy, const Type& dx,
                                                                    const Attributes& attributes) {
  return Convolution(dx, dense_weight(attributes, dx.dtype), dy, attributes).backward_data();
}

KernelMatch match_grad_input(const KernelQuery& query) {
  return match_reals(query, {&query.inputs[0], &query.inputs[1], &query.outputs[0]}, [&]() -> KernelMatch {
    const auto description = describe_grad_input(query.inputs[0], query.outputs[0], query.attributes);
    WorkspaceCutter cutter;
    cut(cutter, part_of_call(query.attributes), description.weights_desc(), description.scratchpad_desc());
    return Accept{.workspace = cutter.used(), .numerics = kWhole, .is_reference = is_reference(description)};
  });
}

std::unique_ptr<BoundKernel> bind_grad_input(const KernelArguments& arguments) {
  const OmpThreads scope(arguments.threads);
  const auto description = describe_grad_input(arguments.inputs[0].type, arguments.outputs[0].type, arguments.attributes);
  const SparsePart part = whole_part(ops::SparseSlot::from(arguments.attributes), arguments.inputs[2], arguments.inputs[3]);
  WorkspaceCutter cutter(arguments.workspace.data());
  const Pieces pieces = cut(cutter, part, description.weights_desc(), description.scratchpad_desc());
  auto chain = std::make_unique<PrimitiveChain>();
  chain->add_action(
      expand(part, arguments.inputs[1].data, description.weights_desc(), pieces.dense, pieces.tables, arguments.threads));
  chain->add(dnnl::convolution_backward_data(description),
             {{DNNL_ARG_DIFF_DST, memory_at(description.diff_dst_desc(), arguments.inputs[0].data)},
              {DNNL_ARG_WEIGHTS, memory_at(description.weights_desc(), pieces.dense)},
              {DNNL_ARG_DIFF_SRC, memory_at(description.diff_src_desc(), arguments.outputs[0].data)},
              {DNNL_ARG_SCRATCHPAD, memory_at(description.scratchpad_desc(), pieces.scratchpad)}});
  return chain;
}

// ---- weight gradient: (dy, x, columns, rows, sum?) -> gradient of the store

dnnl::convolution_backward_weights::primitive_desc describe_grad_weight(const Type& dy, const Type& x,
                                                                        const Attributes& attributes) {
  const Convolution conv(x, dense_weight(attributes, x.dtype), dy, attributes);
  return conv.backward_weights(conv.wanted_gradient());
}

KernelMatch match_grad_weight(const KernelQuery& query) {
  return match_reals(query, {&query.inputs[0], &query.inputs[1], &query.outputs[0]}, [&]() -> KernelMatch {
    const auto description = describe_grad_weight(query.inputs[0], query.inputs[1], query.attributes);
    WorkspaceCutter cutter;
    cut(cutter, part_of_call(query.attributes), description.diff_weights_desc(), description.scratchpad_desc());
    return Accept{.workspace = cutter.used(), .numerics = kWhole, .is_reference = is_reference(description)};
  });
}

std::unique_ptr<BoundKernel> bind_grad_weight(const KernelArguments& arguments) {
  const OmpThreads scope(arguments.threads);
  const auto description = describe_grad_weight(arguments.inputs[0].type, arguments.inputs[1].type, arguments.attributes);
  const SparsePart part = whole_part(ops::SparseSlot::from(arguments.attributes), arguments.inputs[2], arguments.inputs[3]);
  WorkspaceCutter cutter(arguments.workspace.data());
  const Pieces pieces = cut(cutter, part, description.diff_weights_desc(), description.scratchpad_desc());
  auto chain = std::make_unique<PrimitiveChain>();
  chain->add_action(begin_gradient(arguments));
  chain->add(dnnl::convolution_backward_weights(description),
             {{DNNL_ARG_DIFF_DST, memory_at(description.diff_dst_desc(), arguments.inputs[0].data)},
              {DNNL_ARG_SRC, memory_at(description.src_desc(), arguments.inputs[1].data)},
              {DNNL_ARG_DIFF_WEIGHTS, memory_at(description.diff_weights_desc(), pieces.dense)},
              {DNNL_ARG_SCRATCHPAD, memory_at(description.scratchpad_desc(), pieces.scratchpad)}});
  chain->add_action(gather_gradient(part, description.diff_weights_desc(), pieces.dense, arguments.outputs[0].type.dtype,
                                    arguments.outputs[0].data, pieces.tables, arguments.threads));
  return chain;
}

}  // namespace

std::unique_ptr<BoundKernel> begin_gradient(const KernelArguments& arguments) {
  const std::byte* sum = accumulates(arguments.attributes) ? arguments.inputs[4].data : nullptr;
  return make_bound([sum, out = arguments.outputs[0].data, size = arguments.outputs[0].type.bytes().count()] {
    if (sum == nullptr) {
      std::fill_n(out, size, std::byte{0});
    } else if (sum != out) {
      std::copy_n(sum, size, out);
    }
  });
}

constinit const KernelDef onednn_sparse_conv2d{
    .name = "onednn_sparse_conv2d", .op = "sparse_conv2d", .match = match_forward, .bind = bind_forward};
constinit const KernelDef onednn_sparse_conv2d_grad_input{.name = "onednn_sparse_conv2d_grad_input",
                                                          .op = "sparse_conv2d_grad_input",
                                                          .match = match_grad_input,
                                                          .bind = bind_grad_input};
constinit const KernelDef onednn_sparse_conv2d_grad_weight{.name = "onednn_sparse_conv2d_grad_weight",
                                                           .op = "sparse_conv2d_grad_weight",
                                                           .match = match_grad_weight,
                                                           .bind = bind_grad_weight};

}  // namespace snug::backends::cpu
