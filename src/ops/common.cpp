#include "ops/common.h"

#include "base/error.h"
#include "ir/example_rows.h"

namespace snug::ops {

void require_inputs(const OpCall& call, std::size_t least, std::size_t most) {
  const std::size_t count = call.inputs.size();
  if (count < least || count > most) {
    throw_user_error("got {} inputs; it takes {}", count,
                     least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most));
  }
}

void require_rank(const Type& type, std::size_t rank, std::string_view what) {
  if (type.shape.rank() != rank) throw_user_error("{} is {}; it must have {} dimensions", what, to_string(type.shape), rank);
}

void require_same_shape(const Type& a, const Type& b, std::string_view what) {
  if (a.shape != b.shape || a.dtype != b.dtype) {
    throw_user_error("{} must have the same shape and type, but are {} and {}", what, to_string(a), to_string(b));
  }
}

void require_shape(const Type& type, const Shape& shape, std::string_view what) {
  if (type.shape != shape) throw_user_error("{} is {}; it must be {}", what, to_string(type.shape), to_string(shape));
}

Type scalars_type() { return {.dtype = DType::u8, .shape = {static_cast<std::int64_t>(sizeof(Scalars))}}; }

Type metrics_type() { return {.dtype = DType::f64, .shape = {3}}; }

Type gradient_norm_type() { return {.dtype = DType::f64, .shape = {2}}; }

void require_scalars(const Type& type) {
  if (type != scalars_type())
    throw_user_error("the scalar block is {}; it must be {}", to_string(type), to_string(scalars_type()));
}

void require_drawn_rows(const Type& type, const Attributes& attributes) {
  const std::int64_t rows = rows_per_example(attributes);
  if (rows < 0) throw_user_error("{} is {}; use 0 or more", kRowsPerExample, rows);
  if (rows > 0 && (type.shape.rank() == 0 || type.shape[0] % rows != 0))
    throw_user_error("{} is not made of examples of {} rows", to_string(type), rows);
}

void require_example_rows(const Type& type, const Attributes& attributes) {
  if (rows_per_example(attributes) == 0) throw_user_error("{} is 0; use at least 1", kRowsPerExample);
  require_drawn_rows(type, attributes);
}

void require_positions_of_rows(const Type& positions, const Type& x) {
  require_shape(positions, {x.shape[0]}, "the positions");
  if (positions.dtype != DType::i32) throw_user_error("the positions are {}; they must be i32", name_of(positions.dtype));
}

bool flag(const Attributes& attributes, std::string_view name) {
  const std::int64_t value = attributes.integer(name);
  if (value != 0 && value != 1) throw_user_error("{} is {}; it must be 0 or 1", name, value);
  return value == 1;
}

void require_epsilon(const OpCall& call) {
  const double epsilon = call.attributes.real("epsilon");
  if (!(epsilon >= 0)) throw_user_error("epsilon {} is negative", epsilon);
}

DType statistics_dtype(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

Type stored_as(Type type, DType dtype) {
  if (type.layout.kind == Layout::Kind::opaque)
    type.layout.opaque_bytes = Bytes(type.layout.opaque_bytes.count() * bits_per_element(dtype) / bits_per_element(type.dtype));
  type.dtype = dtype;
  return type;
}

std::vector<Type> infer_same_as_first(const OpCall& call) {
  require_inputs(call, 1);
  return {call.inputs[0]};
}

std::vector<Type> infer_same_as_both(const OpCall& call) {
  require_inputs(call, 2);
  require_same_shape(call.inputs[0], call.inputs[1], "the two operands");
  return {call.inputs[0]};
}

bool lies_in_logical_order(const Type& type) {
  if (type.layout.kind == Layout::Kind::opaque) return false;
  if (type.layout.kind == Layout::Kind::row_major || type.shape.rank() < 3) return true;
  return type.shape[1] == 1 || type.elements() == type.shape[0] * type.shape[1];
}

Type type_from_input_shape(const Type& gradient, const Attributes& attributes, const Layout& untold) {
  Type type{.dtype = gradient.dtype,
            .shape = Shape(std::span<const std::int64_t>(attributes.integers("input_shape"))),
            .layout = untold};
  if (!attributes.has("channels_last")) return type;
  type.layout = flag(attributes, "channels_last") ? Layout::channels_last() : Layout::row_major();
  return type;
}

std::int64_t count_operations(std::int64_t results, std::int64_t each) {
  constexpr std::int64_t kMost = std::int64_t{1} << 61U;
  if (each > kMost / results) throw_user_error("{} results of {} operations each are too many to count", results, each);
  return results * each;
}

Attributes with_input_shape(const Attributes& attributes, const Type& input, const Layout& untold) {
  Attributes result = attributes;
  const auto dims = input.shape.dims();
  result.set("input_shape", std::vector<std::int64_t>(dims.begin(), dims.end()));
  if (input.layout != untold && input.layout.kind != Layout::Kind::opaque)
    result.set("channels_last", std::int64_t{input.layout.kind == Layout::Kind::channels_last ? 1 : 0});
  return result;
}

}  // namespace snug::ops
