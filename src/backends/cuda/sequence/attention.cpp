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

// The numbers of the inputs with queries, with keys and values (the same where these are not apart), and of the scalars, which
// the lengths follow where there are some. Backward reads y and log_sum_exp from the two inputs before the scalars, or
// probabilities from the one before.
struct Inputs {
  std::size_t queries, keys, scalars;
  bool probabilities = false;
};
constexpr Inputs kForward{.queries = 0, .keys = 0, .scalars = 1};
constexpr Inputs kGrad{.queries = 1, .keys = 1, .scalars = 4};
constexpr Inputs kGradProbabilities{.queries = 1, .keys = 1, .scalars = 3, .probabilities = true};
constexpr Inputs kCrossForward{.queries = 0, .keys = 1, .scalars = 2};
constexpr Inputs kCrossGrad{.queries = 1, .keys = 2, .scalars = 5};

AttentionShape shape_of(const Inputs& inputs, const Shape& queries, const Shape& keys, const Attributes& attributes) {
  const auto g = inputs.queries == inputs.keys ? ops::AttentionGeometry::from(keys, attributes)
                                               : ops::AttentionGeometry::from_apart(queries, keys, attributes);
  const auto number = [](std::int64_t x) { return static_cast<std::uint32_t>(x); };
  return {.examples = number(g.examples),
          .length = number(g.length),
          .key_length = number(g.key_length),
          .heads = number(g.heads),
          .kv_heads = number(g.kv_heads),
          .head_size = number(g.head_size),
          .query_width = number(g.query_columns()),
          .key_width = number(g.key_columns()),
          .first_key_column = number(g.key_column(0)),
          .causal = g.causal};
}
AttentionShape shape_of(const Inputs& inputs, const Call& call) {
  return shape_of(inputs, call.input_shape(inputs.queries), call.input_shape(inputs.keys), call.attributes());
}
AttentionShape shape_of(const Inputs& inputs, const KernelQuery& query) {
  return shape_of(inputs, query.inputs[inputs.queries].shape, query.inputs[inputs.keys].shape, query.attributes);
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
launch::AttentionOperands<T> operands_of(const Inputs& inputs, const Call& call) {
  return {.queries = call.in<T>(inputs.queries),
          .keys = call.in<T>(inputs.keys),
          .y = call.out<T>(0),
          .log_sum_exp = call.out<float>(1)};
}

template <typename T>
launch::AttentionGradOperands<T> grad_operands_of(const Inputs& inputs, const Call& call) {
  const bool has_probabilities = inputs.probabilities;
  return {.dy = call.in<T>(0),
          .queries = call.in<T>(inputs.queries),
          .keys = call.in<T>(inputs.keys),
          .y = has_probabilities ? nullptr : call.in<T>(inputs.scalars - 2),
          .log_sum_exp = has_probabilities ? nullptr : call.in<float>(inputs.scalars - 1),
          .probabilities = has_probabilities ? call.in<T>(inputs.scalars - 1) : nullptr,
          .dy_times_y = call.workspace<float>(),
          .dqueries = call.out<T>(0),
          .dkeys = call.out<T>(inputs.queries == inputs.keys ? 0 : 1)};
}

// Tensor cores multiply 16 bits.
template <typename T>
constexpr bool kIsTiled = sizeof(T) == 2;

template <const Inputs& I, typename T>
std::unique_ptr<BoundKernel> bind_plain(const Call& call) {
  return call.launch([operands = operands_of<T>(I, call), shape = shape_of(I, call), rule = rule_of(call, I.scalars)](
                         cudaStream_t stream) { launch::plain_attention<T>(stream, operands, shape, rule); });
}

template <const Inputs& I, typename T>
std::unique_ptr<BoundKernel> bind_tiled(const Call& call) {
  if constexpr (!kIsTiled<T>) {
    throw InternalError("attention in tiles was bound to values that it refuses");
  } else {
    const AttentionShape shape = shape_of(I, call);
    const AttentionRule rule = rule_of(call, I.scalars);
    launch::prepare_tiled_attention<T>(shape, rule);
    return call.launch([operands = operands_of<T>(I, call), shape, rule](cudaStream_t stream) {
      launch::tiled_attention<T>(stream, operands, shape, rule);
    });
  }
}

template <typename T>
std::unique_ptr<BoundKernel> bind_probabilities(const Call& call) {
  return call.launch([qkv = call.in<T>(0), to = call.out<T>(0), shape = shape_of(kForward, call), rule = rule_of(call, 1)](
                         cudaStream_t stream) { launch::attention_probabilities<T>(stream, qkv, to, shape, rule); });
}

template <const Inputs& I, typename T>
std::unique_ptr<BoundKernel> bind_plain_grad(const Call& call) {
  return call.launch([operands = grad_operands_of<T>(I, call), shape = shape_of(I, call), rule = rule_of(call, I.scalars)](
                         cudaStream_t stream) { launch::plain_attention_grad<T>(stream, operands, shape, rule); });
}

template <const Inputs& I, typename T>
std::unique_ptr<BoundKernel> bind_tiled_grad(const Call& call) {
  if constexpr (!kIsTiled<T>) {
    throw InternalError("attention in tiles was bound to values that it refuses");
  } else {
    const AttentionShape shape = shape_of(I, call);
    const AttentionRule rule = rule_of(call, I.scalars);
    launch::prepare_tiled_attention_grad<T>(shape, rule);
    return call.launch([operands = grad_operands_of<T>(I, call), shape, rule](cudaStream_t stream) {
      launch::tiled_attention_grad<T>(stream, operands, shape, rule);
    });
  }
}

constexpr Element kReal = Element::real;
constexpr Element kStat = Element::statistic;
constexpr Signature kForwardOperands{.inputs = {kReal, Element::scalars, Element::index}, .outputs = {kReal, kStat}};
constexpr Signature kCrossOperands{.inputs = {kReal, kReal, Element::scalars, Element::index}, .outputs = {kReal, kStat}};
constexpr Signature kProbabilitiesOperands{.inputs = {kReal, Element::scalars, Element::index}};
constexpr Signature kGradOperands{.inputs = {kReal, kReal, kReal, kStat, Element::scalars, Element::index}};
constexpr Signature kCrossGradOperands{.inputs = {kReal, kReal, kReal, kReal, kStat, Element::scalars, Element::index},
                                       .outputs = {kReal, kReal}};
constexpr Signature kGradProbabilitiesOperands{.inputs = {kReal, kReal, kReal, Element::scalars, Element::index}};

// dy times y, of every row and head.
template <const Inputs& I>
Bytes workspace_of_grad(const KernelQuery& query) {
  const Shape& queries = query.inputs[I.queries].shape;
  return Bytes(queries[0] * query.attributes.integer("heads") * static_cast<std::int64_t>(sizeof(float)));
}

template <const Inputs& I, Signature Operands, WorkspaceOf Workspace>
KernelMatch match_plain(const KernelQuery& query) {
  if (auto reason = refusal(Operands, query)) return Refuse{*reason};
  const AttentionShape shape = shape_of(I, query);
  if (shape.head_size > launch::kMostHeadSize) {
    return Refuse{
        fmt::format("heads of {} columns are larger than the {} possible here", shape.head_size, launch::kMostHeadSize)};
  }
  return Accept{.workspace = Workspace(query), .numerics = "plain"};
}

template <const Inputs& I, Signature Operands, WorkspaceOf Workspace>
KernelMatch match_tiled(const KernelQuery& query) {
  if (auto reason = refusal(Operands, query)) return Refuse{*reason};
  if (query.inputs[I.queries].dtype == DType::f32) return Refuse{"tensor cores are for values of 16 bits"};
  const AttentionShape shape = shape_of(I, query);
  // Rows are read in pieces of 16 bytes.
  if (shape.head_size % 8 != 0 || shape.head_size > launch::kMostTiledHeadSize) {
    return Refuse{
        fmt::format("heads of {} columns; tiles are for multiples of 8 up to {}", shape.head_size, launch::kMostTiledHeadSize)};
  }
  const auto scale = static_cast<float>(query.attributes.real("scale"));
  if (!(scale > 0)) return Refuse{fmt::format("the scale is {}; tiles need one above 0", scale)};
  return Accept{.workspace = Workspace(query), .numerics = "tiled"};
}

template <const Inputs& I, auto BinderOf, Signature Operands, WorkspaceOf Workspace = no_workspace>
consteval KernelDef define_tiled(std::string_view name, std::string_view op = {}) {
  KernelDef kernel = define<BinderOf, Operands, Workspace>(name, op);
  kernel.match = match_tiled<I, Operands, Workspace>;
  return kernel;
}

template <const Inputs& I, auto BinderOf, Signature Operands, WorkspaceOf Workspace = no_workspace>
consteval KernelDef define_plain(std::string_view name, std::string_view op = {}) {
  KernelDef kernel = define<BinderOf, Operands, Workspace>(name, op);
  kernel.match = match_plain<I, Operands, Workspace>;
  return kernel;
}

}  // namespace

constinit const KernelDef tiled_attention =
    define_tiled<kForward, []<typename T>() { return bind_tiled<kForward, T>; }, kForwardOperands>("tiled_attention");
constinit const KernelDef tiled_attention_grad =
    define_tiled<kGrad, []<typename T>() { return bind_tiled_grad<kGrad, T>; }, kGradOperands, workspace_of_grad<kGrad>>(
        "tiled_attention_grad");
constinit const KernelDef plain_attention =
    define_plain<kForward, []<typename T>() { return bind_plain<kForward, T>; }, kForwardOperands>("cuda_attention");
constinit const KernelDef plain_attention_grad =
    define_plain<kGrad, []<typename T>() { return bind_plain_grad<kGrad, T>; }, kGradOperands, workspace_of_grad<kGrad>>(
        "cuda_attention_grad");
constinit const KernelDef attention_probabilities =
    define_plain<kForward, []<typename T>() { return bind_probabilities<T>; }, kProbabilitiesOperands>(
        "cuda_attention_probabilities");
constinit const KernelDef attention_grad_probabilities =
    define_plain<kGradProbabilities, []<typename T>() { return bind_plain_grad<kGradProbabilities, T>; },
                 kGradProbabilitiesOperands, workspace_of_grad<kGradProbabilities>>("cuda_attention_grad_probabilities");

constinit const KernelDef tiled_cross_attention =
    define_tiled<kCrossForward, []<typename T>() { return bind_tiled<kCrossForward, T>; }, kCrossOperands>(
        "tiled_cross_attention");
constinit const KernelDef tiled_cross_attention_grad =
    define_tiled<kCrossGrad, []<typename T>() { return bind_tiled_grad<kCrossGrad, T>; }, kCrossGradOperands,
                 workspace_of_grad<kCrossGrad>>("tiled_cross_attention_grad");
constinit const KernelDef plain_cross_attention =
    define_plain<kCrossForward, []<typename T>() { return bind_plain<kCrossForward, T>; }, kCrossOperands>(
        "cuda_cross_attention");
constinit const KernelDef plain_cross_attention_grad =
    define_plain<kCrossGrad, []<typename T>() { return bind_plain_grad<kCrossGrad, T>; }, kCrossGradOperands,
                 workspace_of_grad<kCrossGrad>>("cuda_cross_attention_grad");

}  // namespace snug::backends::cuda
