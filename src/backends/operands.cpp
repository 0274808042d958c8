#include "backends/operands.h"

#include <algorithm>

#include "base/error.h"

namespace snug::backends {

namespace {

// What an element other than a real one is stored as, and the sentence that says so.
struct Stored {
  std::array<DType, 2> dtypes;
  std::string_view sentence;
};

Stored stored_as(Element element, const OperandRules& rules) {
  switch (element) {
    case Element::real:
      break;
    case Element::statistic:
      return {{DType::f32, DType::f32}, "statistics and the parameters of normalisation are f32 here"};
    case Element::scalars:
      return {{DType::u8, DType::u8}, "the scalar block is u8"};
    case Element::labels:
      return {{DType::i32, DType::i32}, "labels are i32"};
    case Element::image_bytes:
      return {{DType::u8, DType::u8}, "images are u8"};
    case Element::bits:
      return {{DType::bit, DType::bit}, "sign bits are of type bit"};
    case Element::argmax:
      return {{DType::u4, DType::u8}, "an argmax is u4 or u8"};
    case Element::metrics:
      return {{DType::f64, DType::f64}, "metrics are f64"};
    case Element::codes:
      return {{DType::u8, DType::u8}, "codes are u8"};
    case Element::single:
      return {{DType::f32, DType::f32}, "what codes are scaled by is f32"};
  }
  return {rules.real, rules.real_sentence};
}

// Carries what the operands before have settled.
class OperandCheck {
 public:
  explicit OperandCheck(const OperandRules& rules) : rules_(rules) {}

  std::optional<std::string> refusal(const Type& type, Element element) {
    const Stored stored = stored_as(element, rules_);
    if (std::ranges::find(stored.dtypes, type.dtype) == stored.dtypes.end()) return std::string(stored.sentence);
    if (type.layout.kind == Layout::Kind::opaque) return "only row_major and channels_last layouts are read here";
    if (type.storage.kind != Storage::Kind::dense) return "only dense values are read here";
    if (rules_.also) {
      if (auto reason = rules_.also(type)) return reason;
    }
    if (element != Element::real) return std::nullopt;
    if (!computing_) computing_ = type.dtype;
    if (type.dtype != *computing_)
      return fmt::format("an operand before it is {}, and all must be the same", name_of(*computing_));
    return std::nullopt;
  }

 private:
  const OperandRules& rules_;
  std::optional<DType> computing_;
};

std::string sentence(std::string_view what, std::size_t i, const Type& type, std::string_view reason) {
  return fmt::format("{} {} is {}: {}", what, i, to_string(type), reason);
}

}  // namespace

std::optional<std::string> refusal(const OperandRules& rules, const Elements& elements, const KernelQuery& query) {
  OperandCheck check(rules);
  for (std::size_t i = 0; i < query.inputs.size(); ++i) {
    if (const auto reason = check.refusal(query.inputs[i], elements.input(i)))
      return sentence("input", i, query.inputs[i], *reason);
  }
  for (std::size_t i = 0; i < query.outputs.size(); ++i) {
    if (const auto reason = check.refusal(query.outputs[i], elements.output(i)))
      return sentence("output", i, query.outputs[i], *reason);
  }
  return std::nullopt;
}

DType computing_dtype(const Elements& elements, std::span<const Operand> inputs, std::span<const Operand> outputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (elements.input(i) == Element::real) return inputs[i].type.dtype;
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (elements.output(i) == Element::real) return outputs[i].type.dtype;
  }
  return DType::f32;
}

}  // namespace snug::backends
