// What a bound kernel keeps on the heap is memory that no plan counts: it may not grow with the work that the kernel does.
#include <memory>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "allocation/counting_heap.h"
#include "backends/cpu/cpu.h"
#include "ops/conv2d.h"
#include "ops/ops.h"

namespace snug {

namespace {

struct Sizes {
  std::int64_t batch, channels;
};

Attributes attributes_of(std::string_view op, const Type& x) {
  Attributes attributes{{"stride", std::vector<std::int64_t>{1, 1}},
                        {"padding", std::vector<std::int64_t>{1, 1}},
                        {"dilation", std::vector<std::int64_t>{1, 1}},
                        {"groups", std::int64_t{1}}};
  if (op == "conv2d_grad_input")
    attributes.set("input_shape", std::vector<std::int64_t>(x.shape.dims().begin(), x.shape.dims().end()));
  if (op == "conv2d_grad_weight") attributes.set("kernel", std::vector<std::int64_t>{3, 3});
  return attributes;
}

// Bytes that a convolution's kernel keeps while it is bound; nothing is run, so no operand needs memory.
std::int64_t bytes_kept(const KernelDef& kernel, Sizes sizes) {
  const Backend backend = backends::cpu_backend(2);
  const Type x{.dtype = DType::f16, .shape = {sizes.batch, sizes.channels, 16, 16}, .layout = Layout::channels_last()};
  Type weight{.dtype = DType::f16, .shape = {sizes.channels, sizes.channels, 3, 3}};
  const Attributes forward = attributes_of("conv2d", x);
  const std::vector<Type> inputs{x, weight}, outputs{x};
  const auto layout = backend.preferred_weight_layout(
      {.op = ops::conv2d, .attributes = forward, .inputs = inputs, .outputs = outputs, .threads = 2});
  if (layout) weight.layout = *layout;
  const bool is_weight = kernel.op == "conv2d_grad_weight";
  const Attributes attributes = attributes_of(kernel.op, x);
  const std::vector<Operand> from{{.type = x, .data = nullptr}, {.type = is_weight ? x : weight, .data = nullptr}};
  const std::vector<Operand> to{{.type = is_weight ? weight : x, .data = nullptr}};
  const KernelArguments arguments{.attributes = attributes, .inputs = from, .outputs = to, .workspace = {}, .threads = 2};
  kernel.bind(arguments);  // what the library remembers of its primitives is not the kernel's
  const std::int64_t before = allocation::heap_use().live_bytes;
  const std::unique_ptr<BoundKernel> bound = kernel.bind(arguments);
  return allocation::heap_use().live_bytes - before;
}

class BoundHalfConvolution : public testing::TestWithParam<const char*> {};

TEST_P(BoundHalfConvolution, KeepsNoMoreForMoreImagesOrSlices) {
  if (!allocation::heap_is_counted()) GTEST_SKIP() << "the sanitizer has a heap of its own";
  const KernelDef* kernel = backends::cpu_backend(2).find(GetParam());
  ASSERT_NE(kernel, nullptr);
  constexpr std::int64_t kTables = 4096;  // of where the channels lie in a layout: 8 bytes each
  const std::int64_t small = bytes_kept(*kernel, {.batch = 8, .channels = 64});
  EXPECT_GT(small, 0);
  EXPECT_LE(bytes_kept(*kernel, {.batch = 64, .channels = 64}), small + kTables) << "for more images";
  EXPECT_LE(bytes_kept(*kernel, {.batch = 8, .channels = 128}), small + kTables) << "for more slices";
}

INSTANTIATE_TEST_SUITE_P(Every, BoundHalfConvolution,
                         testing::Values("half_conv2d", "half_conv2d_small", "half_conv2d_least", "half_conv2d_grad_input",
                                         "half_conv2d_grad_input_small", "half_conv2d_grad_input_least",
                                         "half_conv2d_grad_weight", "half_conv2d_grad_weight_small",
                                         "half_conv2d_grad_weight_least"),
                         [](const auto& kernel) { return std::string(kernel.param); });

}  // namespace

}  // namespace snug
