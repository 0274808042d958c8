#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/packing.h"

// pack(x, scalars) {bits: 2|4|8, key, rows_per_example?} -> codes u8[bytes], ranges f32[groups, 2]
//   A real value in few bits per element: every 256 neighbors in memory share a smallest value and a step, and each is
//   stochastically rounded to one of 2^bits numbers, right on average and off by less than a step. The draws are keyed by (seed,
//   step, key, example, element): any number of threads makes the same codes. Computed in f32 for every dtype of x.
// unpack(codes, ranges) {bits, dtype: the number of a DType, channels_last: 0|1, input_shape} -> x, up to that rounding

namespace snug::ops {

namespace {

bool is_real(DType dtype) { return dtype == DType::f64 || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

std::int64_t bits_of(const OpCall& call) {
  const std::int64_t bits = call.attributes.integer("bits");
  if (bits != 2 && bits != 4 && bits != 8) throw_user_error("{} bits per element are not possible; use 2, 4 or 8", bits);
  return bits;
}

Type codes_type(std::int64_t elements, std::int64_t bits) { return {.dtype = DType::u8, .shape = {pack_bytes(elements, bits)}}; }
Type ranges_type(std::int64_t elements) { return {.dtype = DType::f32, .shape = {pack_groups(elements), 2}}; }

std::vector<Type> infer_pack(const OpCall& call) {
  require_inputs(call, 2);
  require_scalars(call.inputs[1]);
  const std::int64_t bits = bits_of(call);
  const std::int64_t key = call.attributes.integer("key");
  if (key < 0 || key > kMostPackKey) throw_user_error("the key {} is not in 0 to {}", key, kMostPackKey);
  const Type& x = call.inputs[0];
  if (!is_real(x.dtype)) throw_user_error("{} holds no real numbers", to_string(x));
  if (x.shape.rank() == 0) throw_user_error("{} has no examples", to_string(x));
  require_drawn_rows(x, call.attributes);
  return {codes_type(x.elements(), bits), ranges_type(x.elements())};
}

std::vector<Type> infer_unpack(const OpCall& call) {
  require_inputs(call, 2);
  const std::int64_t bits = bits_of(call);
  const std::int64_t dtype = call.attributes.integer("dtype");
  if (dtype < 0 || dtype > static_cast<std::int64_t>(DType::bf16) || !is_real(static_cast<DType>(dtype)))
    throw_user_error("dtype {} is not the number of a real type", dtype);
  Type x{.dtype = static_cast<DType>(dtype),
         .shape = Shape(std::span<const std::int64_t>(call.attributes.integers("input_shape")))};
  if (call.attributes.integer("channels_last") != 0) x.layout = Layout::channels_last();
  const std::array<Type, 2> expected{codes_type(x.elements(), bits), ranges_type(x.elements())};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (call.inputs[i] != expected[i])
      throw_user_error("{} in {} bits has operand {} as {}, not {}", to_string(x), bits, i, to_string(expected[i]),
                       to_string(call.inputs[i]));
  }
  return {x};
}

constexpr std::array<std::string_view, 2> kPackOutputs{"codes", "ranges"};

}  // namespace

constinit const OpDef pack{.name = "pack",
                           .infer = infer_pack,
                           .flops = flops_per_input_element<5>,
                           .outputs = kPackOutputs,
                           .cheap_to_recompute = true,
                           .packing = Packing::packs,
                           .is_auxiliary = true};

constinit const OpDef unpack{.name = "unpack",
                             .infer = infer_unpack,
                             .flops = flops_per_output_element<2>,
                             .cheap_to_recompute = true,
                             .packing = Packing::unpacks};

}  // namespace snug::ops
