#include "backends/cpu/onednn.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/simd.h"
#include "base/error.h"

// The three matrix products of a linear layer by oneDNN, with transposed operands described by their strides.

namespace snug::backends::cpu {

namespace {

using Dims = dnnl::memory::dims;

dnnl::memory::desc matrix(std::int64_t rows, std::int64_t columns) {
  return {Dims{rows, columns}, dnnl::memory::data_type::f32, Dims{columns, 1}};
}
dnnl::memory::desc transposed(std::int64_t rows, std::int64_t columns) {
  return {Dims{rows, columns}, dnnl::memory::data_type::f32, Dims{1, rows}};
}

// c = a b (+ bias), and which operand of the node each is.
struct Product {
  dnnl::memory::desc a, b, c, bias;
  std::size_t a_input, b_input;
  bool has_bias = false;
  bool adds = false;

  dnnl::matmul::primitive_desc description() const {
    return has_bias ? dnnl::matmul::primitive_desc({a, b, bias, c}, booked_scratchpad(), engine())
                    : dnnl::matmul::primitive_desc({a, b, c}, booked_scratchpad(), engine());
  }
};

// linear(x [N,I], weight [O,I], bias [O]?)
Product forward(std::span<const Type> inputs, const Attributes& /*attributes*/) {
  const std::int64_t n = inputs[0].shape[0];
  const std::int64_t in = inputs[0].shape[1];
  const std::int64_t out = inputs[1].shape[0];
  return {.a = matrix(n, in),
          .b = transposed(in, out),
          .c = matrix(n, out),
          .bias = matrix(1, out),
          .a_input = 0,
          .b_input = 1,
          .has_bias = inputs.size() == 3};
}

// linear_grad_input(dy [N,O], weight [O,I])
Product grad_input(std::span<const Type> inputs, const Attributes& attributes) {
  const std::int64_t n = inputs[0].shape[0];
  const std::int64_t out = inputs[0].shape[1];
  const std::int64_t in = inputs[1].shape[1];
  return {.a = matrix(n, out),
          .b = matrix(out, in),
          .c = matrix(n, in),
          .bias = {},
          .a_input = 0,
          .b_input = 1,
          .adds = accumulates(attributes)};
}

// linear_grad_weight(dy [N,O], x [N,I])
Product grad_weight(std::span<const Type> inputs, const Attributes& attributes) {
  const std::int64_t n = inputs[0].shape[0];
  const std::int64_t out = inputs[0].shape[1];
  const std::int64_t in = inputs[1].shape[1];
  return {.a = transposed(out, n),
          .b = matrix(n, in),
          .c = matrix(out, in),
          .bias = {},
          .a_input = 0,
          .b_input = 1,
          .adds = accumulates(attributes)};
}

using MakeProduct = Product (*)(std::span<const Type>, const Attributes&);

template <MakeProduct Make>
KernelMatch match(const KernelQuery& query) {
  for (const auto& types : {query.inputs, query.outputs}) {
    for (const Type& type : types) {
      if (auto reason = objection(type)) return Refuse{*reason};
      if (type.layout.kind != Layout::Kind::row_major) return Refuse{to_string(type) + " is not row-major"};
    }
  }
  try {
    const Product product = Make(query.inputs, query.attributes);
    WorkspaceCutter cutter;
    // A sum is rounded after the product, as a separate addition would: the product first goes into the workspace.
    if (product.adds) cutter.cut(size_of(product.c));
    cutter.cut(size_of(product.description().scratchpad_desc()));
    return Accept{.workspace = cutter.used()};
  } catch (const dnnl::error& error) {
    return Refuse{fmt::format("oneDNN: {}", error.message)};
  }
}

template <MakeProduct Make>
std::unique_ptr<BoundKernel> bind(const KernelArguments& arguments) {
  std::vector<Type> types;
  for (const Operand& operand : arguments.inputs) types.push_back(operand.type);
  const Product product = Make(types, arguments.attributes);
  const auto description = product.description();
  WorkspaceCutter cutter(arguments.workspace.data());
  std::byte* out = arguments.outputs[0].data;
  std::byte* result = product.adds ? cutter.cut(size_of(product.c)) : out;
  auto chain = std::make_unique<PrimitiveChain>();
  std::vector<std::pair<int, dnnl::memory>> list{
      {DNNL_ARG_SRC, memory_at(product.a, arguments.inputs[product.a_input].data)},
      {DNNL_ARG_WEIGHTS, memory_at(product.b, arguments.inputs[product.b_input].data)},
      {DNNL_ARG_DST, memory_at(product.c, result)},
      {DNNL_ARG_SCRATCHPAD, memory_at(description.scratchpad_desc(), cutter.cut(size_of(description.scratchpad_desc())))}};
  if (product.has_bias) list.emplace_back(DNNL_ARG_BIAS, memory_at(product.bias, arguments.inputs[2].data));
  chain->add(dnnl::matmul(description), list);
  if (product.adds) {
    chain->add_action(
        add_floats(arguments.inputs.back().data, result, out, arguments.outputs[0].type.elements(), arguments.threads));
  }
  return chain;
}

}  // namespace

constinit const KernelDef onednn_linear{.name = "onednn_linear", .op = "linear", .match = match<forward>, .bind = bind<forward>};
constinit const KernelDef onednn_linear_grad_input{
    .name = "onednn_linear_grad_input", .op = "linear_grad_input", .match = match<grad_input>, .bind = bind<grad_input>};
constinit const KernelDef onednn_linear_grad_weight{
    .name = "onednn_linear_grad_weight", .op = "linear_grad_weight", .match = match<grad_weight>, .bind = bind<grad_weight>};

}  // namespace snug::backends::cpu
