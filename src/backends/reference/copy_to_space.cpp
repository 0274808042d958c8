#include <cstring>
#include <memory>

#include "backends/reference/kernels.h"

namespace snug::backends::reference {

namespace {

class Copy final : public BoundKernel {
 public:
  explicit Copy(const KernelArguments& arguments) : from_(arguments.inputs[0]), to_(arguments.outputs[0]) {}
  void run() override {
    if (to_.data != from_.data) std::memcpy(to_.data, from_.data, static_cast<std::size_t>(to_.type.bytes().count()));
  }

 private:
  Operand from_, to_;
};

// Copies bytes of any type.
KernelMatch match(const KernelQuery& query) {
  if (query.inputs[0] != query.outputs[0]) return Refuse{"only a value of the same type and layout is the same bytes"};
  return Accept{};
}

std::unique_ptr<BoundKernel> bind(const KernelArguments& arguments) { return std::make_unique<Copy>(arguments); }

}  // namespace

constinit const KernelDef copy_to_space{
    .name = "reference_copy_to_space", .op = "copy_to_space", .match = match, .bind = bind, .takes_host = true};

}  // namespace snug::backends::reference
