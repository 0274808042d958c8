// Every family of sparse kernels against the reference, and against dense training with the same zeros.
#include "ops/sparse/sparse.h"

#include <cmath>
#include <cstring>
#include <optional>

#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "conformance/backend_conformance.h"
#include "conformance/cuda_under_test.h"
#include "frontend/zoo.h"
#include "plan/compile.h"
#include "support/labeled.h"
#include "support/temporary_folder.h"
#include "train/session.h"
#include "train/sparse_weights.h"
#include "train/weights.h"

namespace snug::conformance {
namespace {

// No sparse convolution but those whose names begin and end so.
Backend only(Backend backend, std::string_view prefix, std::string_view suffix) {
  std::erase_if(backend.kernels, [&](const KernelDef* kernel) {
    if (!kernel->op.starts_with("sparse_conv2d")) return false;
    return kernel->name != std::string(prefix) + "_" + std::string(kernel->op) + std::string(suffix);
  });
  return backend;
}

struct NamedBackend {
  std::string name;
  std::string_view prefix, suffix;
  DType dtype = DType::f32;

  bool is_on_gpu() const { return name.starts_with("cuda"); }
  // Nothing, and why, where there is no such device.
  std::optional<Backend> open(std::string& why_not) const {
    const std::optional<Backend> all = is_on_gpu() ? open_cuda(why_not) : backends::cpu_backend(2);
    if (!all) return std::nullopt;
    return only(*all, prefix, suffix);
  }
  // For some products and sizes alone, or some processors.
  bool is_variant() const { return !suffix.empty() || prefix == "pairs"; }
  // cuDNN has no engine for some shapes.
  bool may_refuse() const { return is_variant() || prefix == "cudnn"; }
};

std::vector<NamedBackend> families() {
  return {{"expansion", "onednn", ""},
          {"expansion_f16", "half", "", DType::f16},
          {"expansion_bf16", "onednn", "", DType::bf16},
          {"pairs_bf16", "pairs", "", DType::bf16},
          {"stripes_bf16", "onednn", "_stripes", DType::bf16},
          {"slices", "onednn", "_slices"},
          {"slices_bf16", "onednn", "_slices", DType::bf16},
          {"direct", "direct", ""},
          {"direct_bf16", "direct", "", DType::bf16},
          {"direct_f16", "direct", "", DType::f16},
          {"cuda_gemm", "cuda_gemm", ""},
          {"cuda_cudnn_f16", "cudnn", "", DType::f16},
          {"cuda_cudnn_bf16", "cudnn", "", DType::bf16},
          {"cuda_direct", "cuda_direct", ""},
          {"cuda_direct_f16", "cuda_direct", "", DType::f16},
          {"cuda_direct_bf16", "cuda_direct", "", DType::bf16}};
}

// How many of the cases the family's kernels took.
int compare_all(const NamedBackend& family, const Backend& backend, const std::vector<OpCase>& cases, double& worst) {
  int taken = 0;
  for (const OpCase& test : cases) {
    if (!test.op->name.starts_with("sparse_conv2d")) continue;
    const Comparison comparison = compare(backend, test, family.dtype);
    if (!comparison.refusal.empty() && family.may_refuse()) continue;
    EXPECT_EQ(comparison.refusal, "") << test.name;
    for (const std::string& complaint : comparison.complaints) ADD_FAILURE() << test.name << ": " << complaint;
    worst = std::max(worst, comparison.worst);
    ++taken;
  }
  return taken;
}

// Why this processor runs none of a family; empty: it does.
std::string missing_on_this_processor(const NamedBackend& family, const Backend& backend) {
  if (family.prefix == "onednn" && family.dtype == DType::bf16 && !backend.instructions.starts_with("avx512"))
    return "oneDNN has no bf16 with " + backend.instructions;
  for (const OpCase& test : sparse_wrn_cases(0.3)) {
    if (test.op->name != "sparse_conv2d_grad_weight") continue;
    const std::string refusal = compare(backend, test, family.dtype).refusal;
    return refusal.find("the processor has no") != std::string::npos ? refusal : "";
  }
  return "";
}

class SparseFamily : public testing::TestWithParam<NamedBackend> {
 protected:
  void SetUp() override {
    std::string why_not;
    backend_ = GetParam().open(why_not);
    if (backend_) why_not = missing_on_this_processor(GetParam(), *backend_);
    if (!why_not.empty()) GTEST_SKIP() << why_not;
  }

  std::optional<Backend> backend_;
};

TEST_P(SparseFamily, AgreesWithTheReference) {
  double worst = 0;
  compare_all(GetParam(), *backend_, sparse_cases(), worst);
}

TEST_P(SparseFamily, AgreesWithTheReferenceAtEveryDensity) {
  for (const double density : {0.01, 0.05, 0.1, 0.3, 0.5, 1.0}) {
    double worst = 0;
    EXPECT_GT(compare_all(GetParam(), *backend_, sparse_wrn_cases(density), worst), 0);
    std::printf("  %-14s density %4.2f worst error %.3f of the allowed\n", GetParam().name.c_str(), density, worst);
  }
}

// wrn-10-2 has every kind of convolution that wrn-28-2 has. The same weights, dense: one step moves those that are stored alike.
TEST_P(SparseFamily, MovesItsWeightsAsDenseTrainingWould) {
  if (GetParam().is_variant() || GetParam().dtype != DType::f32) GTEST_SKIP() << "held to the reference alone";
  const Backend& backend = *backend_;
  const support::TemporaryFolder folder;
  const Program graph = frontend::build_zoo_model("wrn-10-2", {.batch = 2, .image_size = 16});
  const ops::UpdateOptions update{.settings = ops::sgd_settings({.momentum = 0, .weight_decay = 0, .nesterov = false})};
  for (const double density : {0.01, 0.05, 0.1, 0.3, 0.5, 0.999}) {
    train::Session sparse(compile(graph, backend, {.methods = {.nonzero = density}, .update = update}), backend, 3);
    train::export_weights(folder / "w", sparse);
    train::Session dense(compile(graph, backend, {.update = update}), backend, 3);  // augments alike
    train::import_weights(folder / "w", dense);
    std::vector<std::byte> images(2 * 16 * 16 * 3);
    for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<std::byte>((i * 2654435761U) >> 24U);
    const std::vector<std::int32_t> labels{3, 7};
    std::vector<double> losses;
    for (train::Session* session : {&sparse, &dense}) {
      session->set_learning_rate(1);
      losses.push_back(session->train_step(support::Labeled(images, labels)).loss);
    }
    EXPECT_NEAR(losses[0], losses[1], 1e-4 * losses[1]);
    const auto tensors = ops::sparse_tensors(sparse.plan().program);
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      const std::vector<double> expected = dense.read_state(tensors[t].name);
      std::size_t at = 0;
      double worst = 0;
      double largest = 0;
      train::read_sparse_tensor(sparse, t, [&](std::span<const std::byte> row) {
        for (std::size_t i = 0; i < row.size() / sizeof(float); ++i, ++at) {
          float value = 0;
          std::memcpy(&value, row.data() + i * sizeof(float), sizeof value);
          if (value == 0) continue;
          worst = std::max(worst, std::abs(value - expected[at]));
          largest = std::max(largest, std::abs(expected[at]));
        }
      });
      EXPECT_LT(worst, 2e-3 * largest) << tensors[t].name << " at " << density;
      EXPECT_GT(largest, 0);
    }
  }
}

std::string name_of_family(const testing::TestParamInfo<NamedBackend>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Families, SparseFamily, testing::ValuesIn(families()), name_of_family);

}  // namespace
}  // namespace snug::conformance
