#include "backends/cuda/call.h"

#include <limits>

#include "base/error.h"

namespace snug::backends::cuda {

namespace {

// Indices on the device are 32 bits.
constexpr std::int64_t kMaxElements = std::numeric_limits<std::int32_t>::max();

Element element_at(std::span<const Element> elements, std::size_t i) { return i < elements.size() ? elements[i] : Element::real; }

bool holds(DType dtype, Element element) {
  switch (element) {
    case Element::real:
      return dtype == DType::f32 || dtype == DType::f16;
    case Element::statistic:
      return dtype == DType::f32;
    case Element::scalars:
    case Element::image_bytes:
      return dtype == DType::u8;
    case Element::labels:
      return dtype == DType::i32;
    case Element::bits:
      return dtype == DType::bit;
    case Element::argmax:
      return dtype == DType::u4 || dtype == DType::u8;
    case Element::metrics:
      return dtype == DType::f64;
  }
  return false;
}

std::string_view wanted(Element element) {
  switch (element) {
    case Element::real:
      return "values are f32 or f16 here";
    case Element::statistic:
      return "statistics and the parameters of normalisation are f32 here";
    case Element::scalars:
      return "the scalar block is u8";
    case Element::image_bytes:
      return "images are u8";
    case Element::labels:
      return "labels are i32";
    case Element::bits:
      return "sign bits are of type bit";
    case Element::argmax:
      return "an argmax is u4 or u8";
    case Element::metrics:
      return "metrics are f64";
  }
  return "";
}

// Carries what the operands before have settled.
class OperandCheck {
 public:
  explicit OperandCheck(Layouts layouts) : layouts_(layouts) {}

  std::optional<std::string> refusal(const Type& type, Element element) {
    if (!holds(type.dtype, element)) return std::string(wanted(element));
    if (type.storage.kind != Storage::Kind::dense) return "only dense values are read here";
    if (type.layout.kind == Layout::Kind::opaque) return "only row_major and channels_last layouts are read here";
    if (type.elements() > kMaxElements) return "values have at most 2^31 - 1 elements here";
    if (type.shape.rank() > 2) {
      if (layouts_ == Layouts::channels_last && type.layout.kind != Layout::Kind::channels_last)
        return "values of rank 4 are channels_last here; relayout it first";
      if (!layout_) layout_ = type.layout.kind;
      if (layouts_ == Layouts::equal && type.layout.kind != *layout_) return "an operand before it has another layout";
    }
    if (element == Element::real) {
      if (!computing_) computing_ = type.dtype;
      if (type.dtype != *computing_)
        return fmt::format("an operand before it is {}, and all must be the same", name_of(*computing_));
    }
    return std::nullopt;
  }

 private:
  Layouts layouts_;
  std::optional<Layout::Kind> layout_;
  std::optional<DType> computing_;
};

}  // namespace

std::optional<std::string> refusal(const Signature& signature, const KernelQuery& query) {
  OperandCheck check(signature.layouts);
  const auto first_refusal = [&](std::span<const Type> types, std::span<const Element> elements,
                                 std::string_view what) -> std::optional<std::string> {
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (const auto reason = check.refusal(types[i], element_at(elements, i)))
        return fmt::format("{} {} is {}: {}", what, i, to_string(types[i]), *reason);
    }
    return std::nullopt;
  };
  if (auto reason = first_refusal(query.inputs, signature.inputs, "input")) return reason;
  return first_refusal(query.outputs, signature.outputs, "output");
}

KernelMatch match_operands(const Signature& signature, WorkspaceOf workspace, const KernelQuery& query) {
  if (auto reason = refusal(signature, query)) return Refuse{*reason};
  return Accept{.workspace = workspace(query)};
}

DType computing_dtype(const Signature& signature, std::span<const Type> inputs, std::span<const Type> outputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (element_at(signature.inputs, i) == Element::real) return inputs[i].dtype;
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (element_at(signature.outputs, i) == Element::real) return outputs[i].dtype;
  }
  return DType::f32;
}

std::unique_ptr<BoundKernel> bind_by_dtype(const Signature& signature, Binder f32, Binder f16, const KernelArguments& arguments) {
  std::vector<Type> inputs;
  std::vector<Type> outputs;
  for (const Operand& operand : arguments.inputs) inputs.push_back(operand.type);
  for (const Operand& operand : arguments.outputs) outputs.push_back(operand.type);
  const DType dtype = computing_dtype(signature, inputs, outputs);
  return (dtype == DType::f16 ? f16 : f32)(Call(arguments));
}

}  // namespace snug::backends::cuda
