#include "backends/cuda/call.h"

#include <limits>

#include "base/error.h"

namespace snug::backends::cuda {

namespace {

// Indices on the device are 32 bits.
constexpr std::int64_t kMaxElements = std::numeric_limits<std::int32_t>::max();

// What this backend requires of layouts; remembers what earlier operands have fixed.
class LayoutCheck {
 public:
  explicit LayoutCheck(Layouts layouts) : layouts_(layouts) {}

  std::optional<std::string> operator()(const Type& type) {
    if (type.elements() > kMaxElements) return "values have at most 2^31 - 1 elements here";
    if (type.shape.rank() <= 2) return std::nullopt;
    if (layouts_ == Layouts::images && type.layout.kind != Layout::Kind::channels_last)
      return "images are channels_last here; relayout it first";
    if (!layout_) layout_ = type.layout.kind;
    if (layouts_ == Layouts::equal && type.layout.kind != *layout_) return "an operand before it has another layout";
    return std::nullopt;
  }

 private:
  Layouts layouts_;
  std::optional<Layout::Kind> layout_;
};

}  // namespace

std::optional<std::string> refusal(const Signature& signature, const KernelQuery& query) {
  return backends::refusal({.who = "this backend", .real = Reals::kDTypes, .also = LayoutCheck(signature.layouts)},
                           signature.elements(), query);
}

KernelMatch match_operands(const Signature& signature, WorkspaceOf workspace, const KernelQuery& query) {
  if (auto reason = refusal(signature, query)) return Refuse{*reason};
  return Accept{.workspace = workspace(query)};
}

std::unique_ptr<BoundKernel> bind_one(std::span<const Binder> binders, const Signature& signature,
                                      const KernelArguments& arguments) {
  const DType dtype = computing_dtype(signature.elements(), arguments.inputs, arguments.outputs);
  SNUG_CHECK(Reals::contains(dtype), "this backend has no kernels for {}", name_of(dtype));
  return binders[Reals::place_of(dtype)](Call(arguments));
}

}  // namespace snug::backends::cuda
