// What a kernel's operands hold, and whether a backend's kernels can read them: the part of matching that does not depend on the
// kernel.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ir/kernel.h"

namespace snug::backends {

// All real operands of a node are of one type, in which it is computed. Statistics, and the parameters of normalisation, may be
// wider.
enum class Element : std::uint8_t { real, statistic, scalars, labels, image_bytes, bits, argmax, metrics, codes, single };

// The operands of a kernel in order; those not listed are real.
struct Elements {
  std::array<Element, 10> inputs{};
  std::array<Element, 6> outputs{};

  Element input(std::size_t i) const { return i < inputs.size() ? inputs[i] : Element::real; }
  Element output(std::size_t i) const { return i < outputs.size() ? outputs[i] : Element::real; }
};

struct OperandRules {
  std::array<DType, 2> real;  // either
  std::string_view real_sentence;
  std::function<std::optional<std::string>(const Type&)> also = nullptr;  // why an operand of the right type will not do either
};

// Why the operands cannot be taken ("input 1 is f16[2x3]: ..."); nothing when they can.
std::optional<std::string> refusal(const OperandRules& rules, const Elements& elements, const KernelQuery& query);

// Of the first real operand; f32 where there is none.
DType computing_dtype(const Elements& elements, std::span<const Operand> inputs, std::span<const Operand> outputs);

}  // namespace snug::backends
