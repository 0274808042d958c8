// A layer's result and its gradient lie as its input does: nothing is brought into another layout on the way.
#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "backends/reference/reference.h"
#include "conformance/backend_conformance.h"
#include "frontend/graph_builder.h"
#include "ops/ops.h"
#include "passes/model/narrow.h"
#include "plan/compile.h"

namespace snug::conformance {
namespace {

using frontend::GraphBuilder;

constexpr std::int64_t kBatch = 3, kHeads = 4, kLength = 5, kWidth = 6;

// Values [N,H,T,D] as attention has them. The parameters stand for what projections make; the features stay zero.
Program attention_like(DType dtype) {
  GraphBuilder b("attention-like", kBatch);
  const auto heads = [&](const std::string& name) {
    return b.parameter(name, {.dtype = DType::f32, .shape = {kBatch, kHeads, kLength, kWidth}},
                       {.kind = Initializer::Kind::normal, .amount = 1.0});
  };
  const ValueId x = b.add("input", b.features({kHeads, kLength, kWidth}), heads("x"));
  ValueId y = b.add("add1", b.relu("relu", x), heads("y"));
  y = b.emit("gelu1", ops::gelu, {b.dropout("dropout", y, 0.25)}, {{"tanh", std::int64_t{0}}}).front();
  y = b.add("add2", y, x);
  y = b.reshape("merge", y, {kBatch, kHeads * kLength, kWidth});
  y = b.emit("gelu2", ops::gelu, {y}, {{"tanh", std::int64_t{1}}}).front();
  b.softmax_cross_entropy(b.linear("fc", b.flatten("flatten", y), 7));
  return narrow(std::move(b).finish(), dtype);
}

void expect_nothing_but_row_major(const Program& program) {
  for (const Section& section : program.sections) {
    for (const Node& node : section.nodes) {
      EXPECT_NE(node.op->name, "relayout") << node.layer;
      for (const ValueId output : node.outputs) {
        const Type& type = section.value(output).type;
        EXPECT_EQ(type.layout, Layout::row_major()) << node.op->name << " of " << node.layer << ": " << to_string(type);
      }
    }
  }
}

TEST(Layouts, ValuesOfFourDimensionsStayRowMajor) {
  for (const Backend& backend : {backends::reference_backend(2), backends::cpu_backend(2)}) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      if (backend.name == "reference" && dtype != DType::f32) continue;
      SCOPED_TRACE(std::string(backend.name) + " " + std::string(name_of(dtype)));
      expect_nothing_but_row_major(compile(attention_like(dtype), backend).program);
      const double tolerance = dtype == DType::f32 ? 2e-4 : 4e-2;
      const ModelComparison compared = compare(backend, {.name = "attention-like", .build = attention_like}, dtype, tolerance);
      for (const std::string& complaint : compared.complaints) ADD_FAILURE() << complaint;
      EXPECT_GT(compared.worst_error, 0);  // in f64 the reference has other bits
    }
  }
}

// Ops with windows, whose gradients see neither the input nor its layout.
TEST(Layouts, RowMajorImagesStaySoThroughWindows) {
  GraphBuilder b("row-major", 2);
  const Type images{.dtype = DType::f32, .shape = {2, 3, 8, 8}};
  ValueId x = b.parameter("x", images, {.kind = Initializer::Kind::normal, .amount = 1.0});
  x = b.shortcut("shortcut", b.avg_pool("avg_pool", b.max_pool("max_pool", x)), 5, 1);
  b.softmax_cross_entropy(b.global_avg_pool("global", x));
  expect_nothing_but_row_major(compile(std::move(b).finish(), backends::reference_backend(1)).program);
}

}  // namespace
}  // namespace snug::conformance
