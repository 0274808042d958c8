// One op by the CPU backend, on as many threads as are asked for.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "backends/reference/support.h"

namespace snug::backends {

// All outputs; the kernel that ran, with workspace within the limit, must be called so.
inline std::vector<Tensor> run_all_on_cpu(std::string_view kernel_name, const OpDef& op, std::vector<Tensor> inputs,
                                          const Attributes& attributes, int threads, std::optional<Bytes> workspace_limit = {}) {
  std::vector<Type> types;
  std::vector<Operand> operands;
  for (Tensor& input : inputs) {
    types.push_back(input.type());
    operands.push_back(input.operand());
  }
  const std::vector<Type> output_types = infer_types(op, {types, attributes});
  Backend backend = cpu_backend(threads);
  backend.workspace_limit = workspace_limit;
  Accept accept;
  const KernelDef* kernel =
      backend.choose({.op = op, .attributes = attributes, .inputs = types, .outputs = output_types, .threads = threads}, accept);
  EXPECT_EQ(kernel->name, kernel_name);
  std::vector<Tensor> results(output_types.begin(), output_types.end());
  std::vector<Operand> outputs;
  for (Tensor& result : results) outputs.push_back(result.operand());
  std::vector<std::byte> workspace(static_cast<std::size_t>(accept.workspace.count()));
  kernel->bind({.attributes = attributes, .inputs = operands, .outputs = outputs, .workspace = workspace, .threads = threads})
      ->run();
  for (const Tensor& result : results) EXPECT_TRUE(result.guards_intact());
  return results;
}

}  // namespace snug::backends
