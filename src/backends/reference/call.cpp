#include "backends/reference/call.h"

#include <optional>
#include <span>
#include <utility>

#include "base/error.h"

namespace snug::backends::reference {

namespace {

class BoundFunction final : public BoundKernel {
 public:
  BoundFunction(KernelFunction function, Call call) : function_(function), call_(std::move(call)) {}
  void run() override { function_(call_); }

 private:
  KernelFunction function_;
  Call call_;
};

Element element_at(std::span<const Element> elements, std::size_t i) { return i < elements.size() ? elements[i] : Element::real; }

bool holds(DType dtype, Element element) {
  switch (element) {
    case Element::real:
      return dtype == DType::f32 || dtype == DType::f64;
    case Element::scalars:
      return dtype == DType::u8;
    case Element::labels:
      return dtype == DType::i32;
    case Element::image_bytes:
      return dtype == DType::u8;
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
      return "the reference computes in f32 or f64";
    case Element::scalars:
      return "the scalar block is u8";
    case Element::labels:
      return "labels are i32";
    case Element::image_bytes:
      return "images are u8";
    case Element::bits:
      return "sign bits are of type bit";
    case Element::argmax:
      return "an argmax is u4 or u8";
    case Element::metrics:
      return "metrics are f64";
  }
  return "";
}

// Why these operands cannot be read; none when they can. `computing` is set by the first real operand.
std::optional<std::string> refusal(std::span<const Type> types, std::span<const Element> elements, std::string_view what,
                                   std::optional<DType>& computing) {
  for (std::size_t i = 0; i < types.size(); ++i) {
    const Type& type = types[i];
    const Element element = element_at(elements, i);
    const auto because = [&](std::string_view reason) {
      return fmt::format("{} {} is {}: {}", what, i, to_string(type), reason);
    };
    if (!holds(type.dtype, element)) return because(wanted(element));
    if (type.layout.kind == Layout::Kind::opaque) return because("only row_major and channels_last layouts are read here");
    if (type.storage.kind != Storage::Kind::dense) return because("only dense values are read here");
    if (element != Element::real) continue;
    if (!computing) computing = type.dtype;
    if (type.dtype != *computing)
      return because(fmt::format("an operand before it is {}, and all must be the same", name_of(*computing)));
  }
  return std::nullopt;
}

}  // namespace

KernelMatch match_operands(const Signature& signature, const KernelQuery& query) {
  std::optional<DType> computing;
  if (auto reason = refusal(query.inputs, signature.inputs, "input", computing)) return Refuse{*reason};
  if (auto reason = refusal(query.outputs, signature.outputs, "output", computing)) return Refuse{*reason};
  return Accept{};
}

std::unique_ptr<BoundKernel> bind_function(const Signature& signature, KernelFunction f32, KernelFunction f64,
                                           const KernelArguments& arguments) {
  SNUG_CHECK(arguments.threads >= 1, "a kernel is bound to {} threads", arguments.threads);
  const auto function = [&]() -> KernelFunction {
    for (std::size_t i = 0; i < arguments.inputs.size(); ++i) {
      if (element_at(signature.inputs, i) == Element::real) return arguments.inputs[i].type.dtype == DType::f64 ? f64 : f32;
    }
    return arguments.outputs[0].type.dtype == DType::f64 ? f64 : f32;
  };
  return std::make_unique<BoundFunction>(function(), Call{.attributes = arguments.attributes,
                                                          .inputs = {arguments.inputs.begin(), arguments.inputs.end()},
                                                          .outputs = {arguments.outputs.begin(), arguments.outputs.end()},
                                                          .threads = arguments.threads});
}

}  // namespace snug::backends::reference
