// One op by the CPU backend, on as many threads as are asked for.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "backends/reference/support.h"

namespace snug::backends {

// What a kernel is asked: operands and their types.
struct CpuCall {
  const OpDef& op;
  std::vector<Tensor> inputs;
  const Attributes& attributes;
  int threads;
  std::vector<Type> types = {}, output_types = {};

  CpuCall(const OpDef& of, std::vector<Tensor> with, const Attributes& how, int by)
      : op(of), inputs(std::move(with)), attributes(how), threads(by) {
    for (const Tensor& input : inputs) types.push_back(input.type());
    output_types = infer_types(op, {types, attributes});
  }
  KernelQuery query() const {
    return {.op = op, .attributes = attributes, .inputs = types, .outputs = output_types, .threads = threads};
  }

  // All outputs; nothing outside of the workspace may be written.
  std::vector<Tensor> run(const KernelDef& kernel, Bytes workspace) {
    std::vector<Operand> operands, outputs;
    for (Tensor& input : inputs) operands.push_back(input.operand());
    std::vector<Tensor> results(output_types.begin(), output_types.end());
    for (Tensor& result : results) outputs.push_back(result.operand());
    Tensor scratch({.dtype = DType::u8, .shape = {std::max<std::int64_t>(workspace.count(), 1)}});
    const std::span<std::byte> scratch_bytes(scratch.operand().data, static_cast<std::size_t>(workspace.count()));
    kernel
        .bind({.attributes = attributes, .inputs = operands, .outputs = outputs, .workspace = scratch_bytes, .threads = threads})
        ->run();
    EXPECT_TRUE(scratch.guards_intact()) << kernel.name << " wrote outside of its workspace";
    for (const Tensor& result : results) EXPECT_TRUE(result.guards_intact());
    return results;
  }
};

// The kernel that ran, with workspace within the limit, must be called so.
inline std::vector<Tensor> run_all_on_cpu(std::string_view kernel_name, const OpDef& op, std::vector<Tensor> inputs,
                                          const Attributes& attributes, int threads, std::optional<Bytes> workspace_limit = {}) {
  CpuCall call(op, std::move(inputs), attributes, threads);
  Backend backend = cpu_backend(threads);
  backend.workspace_limit = workspace_limit;
  Accept accept;
  const KernelDef* kernel = backend.choose(call.query(), accept);
  EXPECT_EQ(kernel->name, kernel_name);
  return call.run(*kernel, accept.workspace);
}

// By the kernel of that name, whichever would be chosen; nothing where it refuses.
inline std::optional<std::vector<Tensor>> run_by(std::string_view kernel_name, const OpDef& op, std::vector<Tensor> inputs,
                                                 const Attributes& attributes, int threads) {
  CpuCall call(op, std::move(inputs), attributes, threads);
  const Backend backend = cpu_backend(threads);
  const KernelDef* kernel = backend.find(kernel_name);
  const KernelMatch match = kernel->match(call.query());
  if (!std::holds_alternative<Accept>(match)) return std::nullopt;
  return call.run(*kernel, std::get<Accept>(match).workspace);
}

}  // namespace snug::backends
