#include <algorithm>

#include "backends/cpu/half/rows.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/onednn/onednn.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/pieces.h"
#include "backends/cpu/storage.h"

// The three products of a linear layer with 16-bit numbers that the processor cannot compute with. The batch's rows are converted
// to floats as a whole; the weight, which may be far larger, and its gradient only a tile at a time.

namespace snug::backends::cpu {

namespace {

using Dims = dnnl::memory::dims;

enum class Kind : std::uint8_t { forward, grad_input, grad_weight };

// linear(x [N,I], weight [O,I], bias [O]?), linear_grad_input(dy [N,O], weight [O,I]), linear_grad_weight(dy [N,O], x [N,I])
struct Call {
  Kind kind;
  std::int64_t batch, in, out;
  bool has_bias, adds;
  std::int64_t tile;  // outputs at a time; of the data gradient, inputs

  Call(Kind of_op, std::span<const Type> inputs, const Attributes& attributes)
      : kind(of_op),
        batch(inputs[0].shape[0]),
        in(kind == Kind::forward ? inputs[0].shape[1] : inputs[1].shape[1]),
        out(kind == Kind::forward ? inputs[1].shape[0] : inputs[0].shape[1]),
        has_bias(kind == Kind::forward && inputs.size() == 3),
        adds(accumulates(attributes)) {
    constexpr std::int64_t kTileFloats = std::int64_t{1} << 18U;
    constexpr std::int64_t kVector = 16;
    const std::int64_t across = kind == Kind::grad_input ? out : in;
    const std::int64_t wanted = std::max<std::int64_t>(kTileFloats / across / kVector, 1) * kVector;
    tile = std::min(wanted, tiled());
  }
  std::int64_t tiled() const { return kind == Kind::grad_input ? in : out; }

  static dnnl::memory::desc matrix(std::int64_t rows, std::int64_t columns, std::int64_t row_step, std::int64_t column_step) {
    return {Dims{rows, columns}, dnnl::memory::data_type::f32, Dims{row_step, column_step}};
  }
  dnnl::memory::desc a(std::int64_t count) const {
    if (kind == Kind::grad_weight) return matrix(count, batch, 1, out);
    return kind == Kind::forward ? matrix(batch, in, in, 1) : matrix(batch, out, out, 1);
  }
  dnnl::memory::desc b(std::int64_t count) const {
    if (kind == Kind::grad_weight) return matrix(batch, in, in, 1);
    return kind == Kind::forward ? matrix(in, count, 1, in) : matrix(out, count, count, 1);
  }
  dnnl::memory::desc c(std::int64_t count) const {
    return kind == Kind::grad_weight ? matrix(count, in, in, 1) : matrix(batch, count, count, 1);
  }
  static dnnl::memory::desc bias(std::int64_t count) { return matrix(1, count, count, 1); }

  dnnl::matmul::primitive_desc description(std::int64_t count) const {
    if (has_bias) return {{a(count), b(count), bias(count), c(count)}, booked_scratchpad(), engine()};
    return {{a(count), b(count), c(count)}, booked_scratchpad(), engine()};
  }
  Bytes scratchpad() const {
    Bytes most = size_of(description(tile).scratchpad_desc());
    if (tiled() % tile != 0) most = std::max(most, size_of(description(tiled() % tile).scratchpad_desc()));
    return most;
  }
};

// Floats: the rows of the batch that are read, and the tile's operands.
struct Pieces {
  std::byte *a, *b, *c, *bias, *scratchpad;
};

Pieces cut(const Call& call, WorkspaceCutter& cutter) {
  const std::int64_t rows = call.kind == Kind::forward ? call.in : call.out;
  return {.a = cutter.cut(Bytes(4 * call.batch * rows)),
          .b = cutter.cut(size_of(call.b(call.tile))),
          .c = cutter.cut(size_of(call.c(call.tile))),
          .bias = call.has_bias ? cutter.cut(Bytes(4 * call.tile)) : nullptr,
          .scratchpad = cutter.cut(call.scratchpad())};
}

template <Kind Of>
KernelMatch match(const KernelQuery& query) {
  if (accumulates(query.attributes) && Of != Kind::grad_weight)
    return Refuse{"the result would not be rounded before it is added to a sum"};
  for (const auto& types : {query.inputs, query.outputs}) {
    for (const Type& type : types) {
      if (!is_16_bits(type)) return Refuse{to_string(type) + " is not bf16 or f16"};
      if (type.layout.kind != Layout::Kind::row_major) return Refuse{to_string(type) + " is not row-major"};
    }
  }
  try {
    const OmpThreads scope(query.threads);
    WorkspaceCutter cutter;
    const Call call(Of, query.inputs, query.attributes);
    cut(call, cutter);
    return Accept{.workspace = cutter.used(), .numerics = "half", .is_reference = is_reference(call.description(call.tile))};
  } catch (const dnnl::error& error) {
    return Refuse{fmt::format("oneDNN: {}", error.message)};
  }
}

float* floats_of(std::byte* data) { return reinterpret_cast<float*>(data); }
std::byte* element(const Operand& operand, std::int64_t number) { return operand.data + 2 * number; }

// Columns of a matrix whose rows are `width` apart: as contiguous floats, and back.
template <typename T>
std::unique_ptr<BoundKernel> gather(const T* from, std::int64_t width, float* to, std::int64_t rows, std::int64_t count,
                                    int threads) {
  return make_bound([=] {
    for_each_part(rows, threads, 1, [&](int, Range part) {
      widen_rows(from + part.begin * width, width, to + part.begin * count, count, part.size());
    });
  });
}

template <typename T>
std::unique_ptr<BoundKernel> scatter(const float* from, T* to, std::int64_t width, std::int64_t rows, std::int64_t count,
                                     int threads) {
  return make_bound([=] {
    for_each_part(rows, threads, 1, [&](int, Range part) {
      narrow_rows(from + part.begin * count, to + part.begin * width, width, count, part.size());
    });
  });
}

// What comes before the product of the tile [first, first + count).
template <typename T>
void add_tile_in(PrimitiveChain& chain, const Call& call, const KernelArguments& arguments, const Pieces& pieces,
                 std::int64_t first, std::int64_t count) {
  const Operand& weight = arguments.inputs[1];
  const DType dtype = weight.type.dtype;
  if (call.kind == Kind::forward) {
    chain.add_action(
        widen_elements(dtype, element(weight, first * call.in), floats_of(pieces.b), count * call.in, arguments.threads));
  }
  if (call.kind == Kind::grad_input)
    chain.add_action(gather(elements<T>(weight) + first, call.in, floats_of(pieces.b), call.out, count, arguments.threads));
  if (call.has_bias) {
    chain.add_action(
        widen_elements(dtype, element(arguments.inputs[2], first), floats_of(pieces.bias), count, arguments.threads));
  }
}

template <typename T>
void add_tile_out(PrimitiveChain& chain, const Call& call, const KernelArguments& arguments, const Pieces& pieces,
                  std::int64_t first, std::int64_t count) {
  const Operand& output = arguments.outputs[0];
  const DType dtype = output.type.dtype;
  const float* fresh = floats_of(pieces.c);
  if (call.kind != Kind::grad_weight) {
    chain.add_action(scatter(fresh, elements<T>(output) + first, call.tiled(), call.batch, count, arguments.threads));
  } else if (call.adds) {
    chain.add_action(add_floats(dtype, element(arguments.inputs[2], first * call.in), fresh, element(output, first * call.in),
                                count * call.in, arguments.threads));
  } else {
    chain.add_action(narrow_elements(dtype, fresh, element(output, first * call.in), count * call.in, arguments.threads));
  }
}

template <Kind Of>
std::unique_ptr<BoundKernel> bind(const KernelArguments& arguments) {
  const OmpThreads scope(arguments.threads);
  std::vector<Type> types;
  for (const Operand& operand : arguments.inputs) types.push_back(operand.type);
  const Call call(Of, types, arguments.attributes);
  WorkspaceCutter cutter(arguments.workspace.data());
  const Pieces pieces = cut(call, cutter);
  auto chain = std::make_unique<PrimitiveChain>();
  const auto widen_all = [&](const Operand& operand, std::byte* target) {
    chain->add_action(
        widen_elements(operand.type.dtype, operand.data, floats_of(target), operand.type.elements(), arguments.threads));
  };
  widen_all(arguments.inputs[0], pieces.a);
  if (Of == Kind::grad_weight) widen_all(arguments.inputs[1], pieces.b);
  for (std::int64_t first = 0; first < call.tiled(); first += call.tile) {
    const std::int64_t count = std::min(call.tile, call.tiled() - first);
    const auto description = call.description(count);
    with_storage(arguments.outputs[0].type.dtype,
                 [&]<typename T>(T /*tag*/) { add_tile_in<T>(*chain, call, arguments, pieces, first, count); });
    std::byte* a = Of == Kind::grad_weight ? pieces.a + 4 * first : pieces.a;
    std::vector<std::pair<int, dnnl::memory>> list{
        {DNNL_ARG_SRC, memory_at(call.a(count), a)},
        {DNNL_ARG_WEIGHTS, memory_at(call.b(count), pieces.b)},
        {DNNL_ARG_DST, memory_at(call.c(count), pieces.c)},
        {DNNL_ARG_SCRATCHPAD, memory_at(description.scratchpad_desc(), pieces.scratchpad)}};
    if (call.has_bias) list.emplace_back(DNNL_ARG_BIAS, memory_at(Call::bias(count), pieces.bias));
    chain->add(dnnl::matmul(description), list);
    with_storage(arguments.outputs[0].type.dtype,
                 [&]<typename T>(T /*tag*/) { add_tile_out<T>(*chain, call, arguments, pieces, first, count); });
  }
  return chain;
}

}  // namespace

constinit const KernelDef half_linear{
    .name = "half_linear", .op = "linear", .match = match<Kind::forward>, .bind = bind<Kind::forward>};
constinit const KernelDef half_linear_grad_input{.name = "half_linear_grad_input",
                                                 .op = "linear_grad_input",
                                                 .match = match<Kind::grad_input>,
                                                 .bind = bind<Kind::grad_input>};
constinit const KernelDef half_linear_grad_weight{.name = "half_linear_grad_weight",
                                                  .op = "linear_grad_weight",
                                                  .match = match<Kind::grad_weight>,
                                                  .bind = bind<Kind::grad_weight>};

}  // namespace snug::backends::cpu
