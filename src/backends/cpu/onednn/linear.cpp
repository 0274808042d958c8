#include <algorithm>

#include "backends/cpu/kernels.h"
#include "backends/cpu/onednn/onednn.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/pieces.h"
#include "base/error.h"

// The three matrix products of a linear layer by oneDNN, with transposed operands described by their strides.

namespace snug::backends::cpu {

namespace {

using Dims = dnnl::memory::dims;

// c = a b (+ bias), where a and b are the node's first two inputs.
struct Product {
  DType dtype = DType::f32;
  std::int64_t rows, inner, columns;
  bool a_is_transposed = false;
  bool b_is_transposed = false;
  bool has_bias = false;
  bool adds = false;
  std::int64_t most_bytes = std::int64_t{4} << 20U;  // of a product before it is added to a sum
  bool always_in_parts = false;                      // even without a sum

  // The product for `count` rows of c; the distance between rows of a transposed a stays that of the whole.
  dnnl::matmul::primitive_desc description(std::int64_t count) const {
    const dnnl::memory::desc c = matrix(count, columns);
    if (has_bias) return {{a(count), b(), matrix(1, columns), c}, booked_scratchpad(), engine()};
    return {{a(count), b(), c}, booked_scratchpad(), engine()};
  }
  dnnl::memory::desc a(std::int64_t count) const {
    return {Dims{count, inner}, data_type_of(dtype), a_is_transposed ? Dims{1, rows} : Dims{inner, 1}};
  }
  dnnl::memory::desc b() const {
    return {Dims{inner, columns}, data_type_of(dtype), b_is_transposed ? Dims{1, inner} : Dims{columns, 1}};
  }
  dnnl::memory::desc matrix(std::int64_t row_count, std::int64_t column_count) const {
    return {Dims{row_count, column_count}, data_type_of(dtype), Dims{column_count, 1}};
  }
  std::int64_t element_bytes() const { return bits_per_element(dtype) / 8; }
  // Elements between the starts of row 0 and row `first` of a.
  std::int64_t a_offset(std::int64_t first) const { return a_is_transposed ? first : first * inner; }

  // A sum is rounded after the product, as a separate addition would: the product goes through the workspace, a few rows at a
  // time, so that adding to the gradient of a large layer does not need a second copy of it.
  std::int64_t rows_at_a_time() const {
    if (!adds && !always_in_parts) return rows;
    return std::clamp<std::int64_t>(most_bytes / (columns * element_bytes()), 1, rows);
  }
};

// linear(x [N,I], weight [O,I], bias [O]?)
Product forward(std::span<const Type> inputs, const Attributes& /*attributes*/) {
  return {.dtype = inputs[0].dtype,
          .rows = inputs[0].shape[0],
          .inner = inputs[0].shape[1],
          .columns = inputs[1].shape[0],
          .b_is_transposed = true,
          .has_bias = inputs.size() == 3};
}

// linear_grad_input(dy [N,O], weight [O,I])
Product grad_input(std::span<const Type> inputs, const Attributes& attributes) {
  return {.dtype = inputs[0].dtype,
          .rows = inputs[0].shape[0],
          .inner = inputs[0].shape[1],
          .columns = inputs[1].shape[1],
          .adds = accumulates(attributes)};
}

// linear_grad_weight(dy [N,O], x [N,I])
Product grad_weight(std::span<const Type> inputs, const Attributes& attributes) {
  return {.dtype = inputs[0].dtype,
          .rows = inputs[0].shape[1],
          .inner = inputs[0].shape[0],
          .columns = inputs[1].shape[1],
          .a_is_transposed = true,
          .adds = accumulates(attributes)};
}

// The same with a fraction of the workspace. Below AVX-512 oneDNN's sums depend on the number of rows, so a new gradient is made
// from as many at a time as one that is added: the bits are then those of a separate addition.
Product grad_weight_few_rows(std::span<const Type> inputs, const Attributes& attributes) {
  Product product = grad_weight(inputs, attributes);
  product.most_bytes = std::int64_t{1} << 16U;
  product.always_in_parts = true;
  return product;
}

using MakeProduct = Product (*)(std::span<const Type>, const Attributes&);

Bytes scratchpad_of(const Product& product) {
  const std::int64_t block = product.rows_at_a_time();
  Bytes most = size_of(product.description(block).scratchpad_desc());
  if (product.rows % block != 0) most = std::max(most, size_of(product.description(product.rows % block).scratchpad_desc()));
  return most;
}

template <MakeProduct Make>
KernelMatch match(const KernelQuery& query) {
  for (const auto& types : {query.inputs, query.outputs}) {
    for (const Type& type : types) {
      if (auto reason = objection(type)) return Refuse{*reason};
      if (type.layout.kind != Layout::Kind::row_major) return Refuse{to_string(type) + " is not row-major"};
    }
  }
  try {
    const OmpThreads scope(query.threads);
    const Product product = Make(query.inputs, query.attributes);
    WorkspaceCutter cutter;
    if (product.adds) cutter.cut(Bytes(product.rows_at_a_time() * product.columns * product.element_bytes()));
    cutter.cut(scratchpad_of(product));
    Accept accept{.workspace = cutter.used(),
                  .numerics = "onednn",
                  .is_reference = is_reference(product.description(product.rows_at_a_time()))};
    if (Make == grad_weight_few_rows) {
      // The same products over fewer rows at a time.
      accept.numerics = "onednn_few_rows";
      accept.slowdown = 1.1;
    }
    return accept;
  } catch (const dnnl::error& error) {
    return Refuse{fmt::format("oneDNN: {}", error.message)};
  }
}

template <MakeProduct Make>
std::unique_ptr<BoundKernel> bind(const KernelArguments& arguments) {
  const OmpThreads scope(arguments.threads);
  std::vector<Type> types;
  for (const Operand& operand : arguments.inputs) types.push_back(operand.type);
  const Product product = Make(types, arguments.attributes);
  const std::int64_t block = product.rows_at_a_time();
  WorkspaceCutter cutter(arguments.workspace.data());
  std::byte* fresh = product.adds ? cutter.cut(Bytes(block * product.columns * product.element_bytes())) : nullptr;
  std::byte* scratchpad = cutter.cut(scratchpad_of(product));
  auto chain = std::make_unique<PrimitiveChain>();
  for (std::int64_t first = 0; first < product.rows; first += block) {
    const std::int64_t count = std::min(block, product.rows - first);
    const auto description = product.description(count);
    const std::int64_t begin = first * product.columns * product.element_bytes();  // of these rows of c, in bytes
    std::byte* out = arguments.outputs[0].data + begin;
    std::vector<std::pair<int, dnnl::memory>> list{
        {DNNL_ARG_SRC, memory_at(product.a(count), arguments.inputs[0].data + product.a_offset(first) * product.element_bytes())},
        {DNNL_ARG_WEIGHTS, memory_at(product.b(), arguments.inputs[1].data)},
        {DNNL_ARG_DST, memory_at(product.matrix(count, product.columns), product.adds ? fresh : out)},
        {DNNL_ARG_SCRATCHPAD, memory_at(description.scratchpad_desc(), scratchpad)}};
    if (product.has_bias)
      list.emplace_back(DNNL_ARG_BIAS, memory_at(product.matrix(1, product.columns), arguments.inputs[2].data));
    chain->add(dnnl::matmul(description), list);
    if (product.adds) {
      chain->add_action(add_elements(product.dtype, arguments.inputs.back().data + begin, fresh, out, count * product.columns,
                                     arguments.threads));
    }
  }
  return chain;
}

}  // namespace

constinit const KernelDef onednn_linear{.name = "onednn_linear", .op = "linear", .match = match<forward>, .bind = bind<forward>};
constinit const KernelDef onednn_linear_grad_input{
    .name = "onednn_linear_grad_input", .op = "linear_grad_input", .match = match<grad_input>, .bind = bind<grad_input>};
constinit const KernelDef onednn_linear_grad_weight{
    .name = "onednn_linear_grad_weight", .op = "linear_grad_weight", .match = match<grad_weight>, .bind = bind<grad_weight>};
constinit const KernelDef onednn_linear_grad_weight_few_rows{.name = "onednn_linear_grad_weight_few_rows",
                                                             .op = "linear_grad_weight",
                                                             .match = match<grad_weight_few_rows>,
                                                             .bind = bind<grad_weight_few_rows>};

}  // namespace snug::backends::cpu
