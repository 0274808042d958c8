#include "backends/cuda/sequence/attention.h"

#include <cmath>

#include <fmt/format.h>

#include "backends/cuda/call.h"
#include "backends/cuda/kernels.h"
#include "base/error.h"
#include "ops/sequence/attention.h"

namespace snug::backends::cuda {

namespace {

using launch::AttentionRule;
using launch::AttentionShape;

AttentionShape shape_of(const Shape& qkv, const Attributes& attributes) {
  const auto g = ops::AttentionGeometry::from(qkv, attributes);
  const auto number = [](std::int64_t x) { return static_cast<std::uint32_t>(x); };
  return {.examples = number(g.examples),
          .length = number(g.length),
          .heads = number(g.heads),
          .kv_heads = number(g.kv_heads),
          .head_size = number(g.head_size),
          .causal = g.causal};
}

// `scalars`: the number of that input, which the lengths follow where there are some.
AttentionRule rule_of(const Call& call, std::size_t scalars) {
  const Attributes& attributes = call.attributes();
  const double dropout = attributes.real("dropout");
  // Words below dropout * 2^32 are dropped, which is exact in double.
  const double first_kept = std::ceil(dropout * 0x1p32);
  return {.scale = static_cast<float>(attributes.real("scale")),
          .lengths = call.input_count() > scalars + 1 ? call.in<std::int32_t>(scalars + 1) : nullptr,
          .scalars = call.scalars(scalars),
          .drops = dropout > 0,
          .last_dropped = dropout > 0 ? static_cast<std::uint32_t>(first_kept - 1) : 0,
          .kept = static_cast<float>(1 / (1 - dropout)),
          .key = static_cast<std::uint64_t>(attributes.integer("key"))};
}

template <typename T>
launch::AttentionOperands<T> operands_of(const Call& call) {
  return {.qkv = call.in<T>(0), .y = call.out<T>(0), .log_sum_exp = call.out<float>(1)};
}

template <typename T>
launch::AttentionGradOperands<T> grad_operands_of(const Call& call) {
  return {.dy = call.in<T>(0),
          .qkv = call.in<T>(1),
          .y = call.in<T>(2),
          .log_sum_exp = call.in<float>(3),
          .probabilities = nullptr,
          .dy_times_y = call.workspace<float>(),
          .dqkv = call.out<T>(0)};
}

// Tensor cores multiply 16 bits.
template <typename T>
constexpr bool kIsTiled = sizeof(T) == 2;

template <typename T>
std::unique_ptr<BoundKernel> bind_plain(const Call& call) {
  return call.launch(
      [operands = operands_of<T>(call), shape = shape_of(call.input_shape(0), call.attributes()),
       rule = rule_of(call, 1)](cudaStream_t stream) { launch::plain_attention<T>(stream, operands, shape, rule); });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_tiled(const Call& call) {
  if constexpr (!kIsTiled<T>) {
    throw InternalError("attention in tiles was bound to values that it refuses");
  } else {
    const AttentionShape shape = shape_of(call.input_shape(0), call.attributes());
    const AttentionRule rule = rule_of(call, 1);
    launch::prepare_tiled_attention<T>(shape, rule);
    return call.launch([operands = operands_of<T>(call), shape, rule](cudaStream_t stream) {
      launch::tiled_attention<T>(stream, operands, shape, rule);
    });
  }
}

template <typename T>
std::unique_ptr<BoundKernel> bind_probabilities(const Call& call) {
  return call.launch(
      [qkv = call.in<T>(0), to = call.out<T>(0), shape = shape_of(call.input_shape(0), call.attributes()),
       rule = rule_of(call, 1)](cudaStream_t stream) { launch::attention_probabilities<T>(stream, qkv, to, shape, rule); });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_plain_grad(const Call& call) {
  return call.launch(
      [operands = grad_operands_of<T>(call), shape = shape_of(call.input_shape(1), call.attributes()),
       rule = rule_of(call, 4)](cudaStream_t stream) { launch::plain_attention_grad<T>(stream, operands, shape, rule); });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_tiled_grad(const Call& call) {
  if constexpr (!kIsTiled<T>) {
    throw InternalError("attention in tiles was bound to values that it refuses");
  } else {
    const AttentionShape shape = shape_of(call.input_shape(1), call.attributes());
    const AttentionRule rule = rule_of(call, 4);
    launch::prepare_tiled_attention_grad<T>(shape, rule);
    return call.launch([operands = grad_operands_of<T>(call), shape, rule](cudaStream_t stream) {
      launch::tiled_attention_grad<T>(stream, operands, shape, rule);
    });
  }
}

template <typename T>
std::unique_ptr<BoundKernel> bind_grad_probabilities(const Call& call) {
  const launch::AttentionGradOperands<T> operands{.dy = call.in<T>(0),
                                                  .qkv = call.in<T>(1),
                                                  .y = nullptr,
                                                  .log_sum_exp = nullptr,
                                                  .probabilities = call.in<T>(2),
                                                  .dy_times_y = call.workspace<float>(),
                                                  .dqkv = call.out<T>(0)};
  return call.launch([operands, shape = shape_of(call.input_shape(1), call.attributes()), rule = rule_of(call, 3)](
                         cudaStream_t stream) { launch::plain_attention_grad<T>(stream, operands, shape, rule); });
}

constexpr Signature kForward{.inputs = {Element::real, Element::scalars, Element::index},
                             .outputs = {Element::real, Element::statistic}};
constexpr Signature kProbabilities{.inputs = {Element::real, Element::scalars, Element::index}};
constexpr Signature kGrad{
    .inputs = {Element::real, Element::real, Element::real, Element::statistic, Element::scalars, Element::index}};
constexpr Signature kGradProbabilities{.inputs = {Element::real, Element::real, Element::real, Element::scalars, Element::index}};

// dy times y, of every row and head.
template <std::size_t Qkv>
Bytes workspace_of_grad(const KernelQuery& query) {
  const Shape& qkv = query.inputs[Qkv].shape;
  return Bytes(qkv[0] * query.attributes.integer("heads") * static_cast<std::int64_t>(sizeof(float)));
}

template <std::size_t Qkv, Signature Operands, WorkspaceOf Workspace>
KernelMatch match_plain(const KernelQuery& query) {
  if (auto reason = refusal(Operands, query)) return Refuse{*reason};
  const AttentionShape shape = shape_of(query.inputs[Qkv].shape, query.attributes);
  if (shape.head_size > launch::kMostHeadSize) {
    return Refuse{
        fmt::format("heads of {} columns are larger than the {} possible here", shape.head_size, launch::kMostHeadSize)};
  }
  return Accept{.workspace = Workspace(query), .numerics = "plain"};
}

template <std::size_t Qkv, Signature Operands, WorkspaceOf Workspace>
KernelMatch match_tiled(const KernelQuery& query) {
  if (auto reason = refusal(Operands, query)) return Refuse{*reason};
  const Type& qkv = query.inputs[Qkv];
  if (qkv.dtype == DType::f32) return Refuse{"tensor cores are for values of 16 bits"};
  const AttentionShape shape = shape_of(qkv.shape, query.attributes);
  // Rows are read in pieces of 16 bytes.
  if (shape.head_size % 8 != 0 || shape.head_size > launch::kMostTiledHeadSize) {
    return Refuse{
        fmt::format("heads of {} columns; tiles are for multiples of 8 up to {}", shape.head_size, launch::kMostTiledHeadSize)};
  }
  const auto scale = static_cast<float>(query.attributes.real("scale"));
  if (!(scale > 0)) return Refuse{fmt::format("the scale is {}; tiles need one above 0", scale)};
  return Accept{.workspace = Workspace(query), .numerics = "tiled"};
}

template <std::size_t Qkv, auto BinderOf, Signature Operands, WorkspaceOf Workspace = no_workspace>
consteval KernelDef define_tiled(std::string_view name) {
  KernelDef kernel = define<BinderOf, Operands, Workspace>(name);
  kernel.match = match_tiled<Qkv, Operands, Workspace>;
  return kernel;
}

template <std::size_t Qkv, auto BinderOf, Signature Operands, WorkspaceOf Workspace = no_workspace>
consteval KernelDef define_plain(std::string_view name, std::string_view op = {}) {
  KernelDef kernel = define<BinderOf, Operands, Workspace>(name, op);
  kernel.match = match_plain<Qkv, Operands, Workspace>;
  return kernel;
}

}  // namespace

constinit const KernelDef tiled_attention =
    define_tiled<0, []<typename T>() { return bind_tiled<T>; }, kForward>("tiled_attention");
constinit const KernelDef tiled_attention_grad =
    define_tiled<1, []<typename T>() { return bind_tiled_grad<T>; }, kGrad, workspace_of_grad<1>>("tiled_attention_grad");
constinit const KernelDef plain_attention =
    define_plain<0, []<typename T>() { return bind_plain<T>; }, kForward>("cuda_attention");
constinit const KernelDef plain_attention_grad =
    define_plain<1, []<typename T>() { return bind_plain_grad<T>; }, kGrad, workspace_of_grad<1>>("cuda_attention_grad");
constinit const KernelDef attention_probabilities =
    define_plain<0, []<typename T>() { return bind_probabilities<T>; }, kProbabilities>("cuda_attention_probabilities");
constinit const KernelDef attention_grad_probabilities =
    define_plain<1, []<typename T>() { return bind_grad_probabilities<T>; }, kGradProbabilities, workspace_of_grad<1>>(
        "cuda_attention_grad_probabilities");

}  // namespace snug::backends::cuda
