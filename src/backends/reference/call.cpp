#include "backends/reference/call.h"

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

}  // namespace

KernelMatch match_operands(const Signature& signature, const KernelQuery& query) {
  static const OperandRules rules{.who = "the reference", .real = Reals::kDTypes};
  if (auto reason = refusal(rules, signature, query)) return Refuse{*reason};
  return Accept{.is_reference = true};
}

std::unique_ptr<BoundKernel> bind_one(std::span<const KernelFunction> functions, const Signature& signature,
                                      const KernelArguments& arguments) {
  SNUG_CHECK(arguments.threads >= 1, "a kernel is bound to {} threads", arguments.threads);
  const DType dtype = computing_dtype(signature, arguments.inputs, arguments.outputs);
  SNUG_CHECK(Reals::contains(dtype), "the reference has no function for {}", name_of(dtype));
  return std::make_unique<BoundFunction>(functions[Reals::place_of(dtype)],
                                         Call{.attributes = arguments.attributes,
                                              .inputs = {arguments.inputs.begin(), arguments.inputs.end()},
                                              .outputs = {arguments.outputs.begin(), arguments.outputs.end()},
                                              .threads = arguments.threads});
}

}  // namespace snug::backends::reference
