#include "backends/operands.h"

#include <fmt/format.h>

#include "ops/common.h"

namespace snug::backends {

namespace {

// The dtypes of an element that does not depend on the computing type, and their description.
struct Stored {
  Element element;
  std::array<DType, 2> dtypes;  // either
  std::string_view sentence;
};

constexpr std::array<Stored, 12> kStored{{
    {Element::single, {DType::f32, DType::f32}, "this operand is f32 whatever the others are"},
    {Element::index, {DType::i32, DType::i32}, "indices are i32"},
    {Element::labels, {DType::i32, DType::i32}, "labels are i32"},
    {Element::codes, {DType::u8, DType::u8}, "codes are u8"},
    {Element::halves, {DType::f16, DType::f16}, "moments under a scale are f16"},
    {Element::scales, {DType::f32, DType::f32}, "what codes are scaled by is f32"},
    {Element::packed, {DType::u8, DType::u8}, "packed numbers are u8"},
    {Element::image_bytes, {DType::u8, DType::u8}, "images are u8"},
    {Element::bits, {DType::bit, DType::bit}, "sign bits are of type bit"},
    {Element::argmax, {DType::u4, DType::u8}, "an argmax is u4 or u8"},
    {Element::scalars, {DType::u8, DType::u8}, "the scalar block is u8"},
    {Element::metrics, {DType::f64, DType::f64}, "metrics are f64"},
}};

// "f32, f16 or bf16"
std::string list_of(std::span<const DType> dtypes) {
  std::string text;
  for (std::size_t i = 0; i < dtypes.size(); ++i) {
    if (i > 0) text += i + 1 == dtypes.size() ? " or " : ", ";
    text += name_of(dtypes[i]);
  }
  return text;
}

// `dtype_of(list, i)` of the first real operand among inputs, then outputs.
template <typename Values, typename DTypeOf>
std::optional<DType> first_real(const Elements& elements, Values inputs, Values outputs, DTypeOf dtype_of) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (elements.inputs[i] == Element::real) return dtype_of(inputs[i]);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (elements.outputs[i] == Element::real) return dtype_of(outputs[i]);
  }
  return std::nullopt;
}

// Why an operand of this type cannot hold such elements; nothing when it can.
std::optional<std::string> dtype_refusal(const OperandRules& rules, DType dtype, Element element, DType computing) {
  if (element == Element::real) {
    if (std::ranges::find(rules.real, dtype) == rules.real.end())
      return fmt::format("{} computes in {}", rules.who, list_of(rules.real));
    if (dtype != computing) return fmt::format("an operand before it is {}, and all must be the same", name_of(computing));
    return std::nullopt;
  }
  if (element == Element::statistic) {
    if (dtype == ops::statistics_dtype(computing)) return std::nullopt;
    return fmt::format("statistics and the parameters of normalization are {} here", name_of(ops::statistics_dtype(computing)));
  }
  const auto stored = std::ranges::find(kStored, element, &Stored::element);
  if (std::ranges::find(stored->dtypes, dtype) != stored->dtypes.end()) return std::nullopt;
  return std::string(stored->sentence);
}

std::optional<std::string> operand_refusal(const OperandRules& rules, const Type& type, Element element, DType computing) {
  if (auto reason = dtype_refusal(rules, type.dtype, element, computing)) return reason;
  if (type.layout.kind == Layout::Kind::opaque) return "only row_major and channels_last layouts are read here";
  return rules.also ? rules.also(type) : std::nullopt;
}

}  // namespace

std::optional<std::string> refusal(const OperandRules& rules, const Elements& elements, const KernelQuery& query) {
  const DType computing =
      first_real(elements, query.inputs, query.outputs, [](const Type& type) { return type.dtype; }).value_or(DType::f32);
  for (std::size_t i = 0; i < query.inputs.size(); ++i) {
    if (const auto reason = operand_refusal(rules, query.inputs[i], elements.inputs[i], computing))
      return fmt::format("input {} is {}: {}", i, to_string(query.inputs[i]), *reason);
  }
  for (std::size_t i = 0; i < query.outputs.size(); ++i) {
    if (const auto reason = operand_refusal(rules, query.outputs[i], elements.outputs[i], computing))
      return fmt::format("output {} is {}: {}", i, to_string(query.outputs[i]), *reason);
  }
  return std::nullopt;
}

DType computing_dtype(const Elements& elements, std::span<const Operand> inputs, std::span<const Operand> outputs) {
  return first_real(elements, inputs, outputs, [](const Operand& operand) { return operand.type.dtype; }).value_or(DType::f32);
}

}  // namespace snug::backends
