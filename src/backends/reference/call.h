// What a reference kernel runs on, and how to make a KernelDef from a plain function template:
//
//   template <typename T> void run_relu(const Call& call) { ... }
//   constinit const KernelDef relu = define<[]<typename T>() { return run_relu<T>; }>("reference_relu");
//
// T runs over `Reals`. A function that is not a template is passed directly: define<run_factor, kFactor>.
#pragma once

#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "backends/operands.h"
#include "backends/reference/tensor.h"
#include "ir/kernel.h"
#include "ir/scalars.h"

namespace snug::backends::reference {

// Output 0 of a kernel, written once per element. With the attribute `accumulate` the last input is added: the result is rounded
// to T first and then added in T, so the bits are those of a separate `add` node. Both may be the same bytes.
template <typename T>
class Result {
 public:
  Result(const Operand& output, const Operand* addend)
      : view_(view_of<T>(output)),
        elements_(output.type.elements()),
        addend_(addend == nullptr ? nullptr : reinterpret_cast<const T*>(addend->data)),
        to_addend_(output.type, addend == nullptr ? output.type : addend->type) {}

  std::int64_t elements() const { return elements_; }
  std::int64_t offset(std::int64_t i, std::int64_t j = 0, std::int64_t k = 0, std::int64_t l = 0) const {
    return view_.offset(i, j, k, l);
  }
  // Kernels compute in double; a T passed through it is unchanged.
  void set(std::int64_t position, double value) const {
    const T rounded = static_cast<T>(value);
    view_.data[position] = addend_ == nullptr ? rounded : addend_[to_addend_(position)] + rounded;
  }

 private:
  View<T> view_;
  std::int64_t elements_;
  const T* addend_;
  PositionMap to_addend_;
};

// An input read by the position of the same element in output 0.
template <typename T>
class ElementwiseInput {
 public:
  ElementwiseInput(const Operand& input, const Operand& output)
      : data_(reinterpret_cast<const T*>(input.data)), from_output_(output.type, input.type) {}

  T operator[](std::int64_t position) const { return data_[from_output_(position)]; }

 private:
  const T* data_;
  PositionMap from_output_;
};

// A node's constants and operands, kept from bind to run.
struct Call {
  Attributes attributes;
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  int threads = 1;

  const Shape& input_shape(std::size_t i) const { return inputs[i].type.shape; }
  const Shape& output_shape(std::size_t i) const { return outputs[i].type.shape; }

  template <typename T>
  View<const T> input(std::size_t i) const {
    return view_of<const T>(inputs[i]);
  }
  template <typename T>
  View<T> output(std::size_t i) const {
    return view_of<T>(outputs[i]);
  }
  template <typename T>
  View<const T> input_pixels(std::size_t i) const {
    return pixel_view_of<const T>(inputs[i]);
  }
  template <typename T>
  ElementwiseInput<T> elementwise(std::size_t i) const {
    return {inputs[i], outputs[0]};
  }
  template <typename T>
  Result<T> result() const {
    return {outputs[0], accumulates(attributes) ? &inputs.back() : nullptr};
  }
  // Read when the kernel runs: the host writes the block between runs.
  Scalars scalars(std::size_t i) const {
    Scalars block;
    std::memcpy(&block, inputs[i].data, sizeof block);
    return block;
  }
};

// Every index separately, so any number of threads gives the same bits.
template <typename Body>
void parallel_for(const Call& call, std::int64_t count, const Body& body) {
#pragma omp parallel for schedule(static) num_threads(call.threads)
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

// The types that the reference computes in.
using Reals = RealTypes<float, double>;

using Signature = Elements;

using KernelFunction = void (*)(const Call&);

KernelMatch match_operands(const Signature& signature, const KernelQuery& query);
// `functions`: one for each of Reals.
std::unique_ptr<BoundKernel> bind_one(std::span<const KernelFunction> functions, const Signature& signature,
                                      const KernelArguments& arguments);

template <auto FunctionOf>
std::unique_ptr<BoundKernel> bind_function(const Signature& signature, const KernelArguments& arguments) {
  static constexpr auto kFunctions = Reals::functions<FunctionOf>();
  return bind_one(kFunctions, signature, arguments);
}

// `name`: "reference_" and the op's name.
template <auto FunctionOf, Signature Operands = Signature{}>
consteval KernelDef define(std::string_view name) {
  return {.name = name,
          .op = name.substr(std::string_view("reference_").size()),
          .match = [](const KernelQuery& query) { return match_operands(Operands, query); },
          .bind = [](const KernelArguments& arguments) { return bind_function<FunctionOf>(Operands, arguments); }};
}

}  // namespace snug::backends::reference
