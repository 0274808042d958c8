#include "backends/cuda/convolution/convolutions.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include <fmt/ranges.h>

#include "backends/cuda/device/library_workspace.h"
#include "base/error.h"

namespace snug::backends::cuda {

namespace {

void check_cudnn(cudnnStatus_t status, std::string_view call) {
  if (status == CUDNN_STATUS_SUCCESS) [[likely]]
    return;
  std::array<char, 512> details{};
  cudnnGetLastErrorString(details.data(), details.size());
  throw InternalError(fmt::format("{} failed: {} {}", call, cudnnGetErrorString(status), details.data()));
}

// One of cuDNN's backend descriptors: a set of attributes, usable once it is finalized.
class Descriptor {
 public:
  Descriptor(cudnnBackendDescriptorType_t type, std::string what) : what_(std::move(what)) {
    cudnnBackendDescriptor_t raw = nullptr;
    check_cudnn(cudnnBackendCreateDescriptor(type, &raw), "cudnnBackendCreateDescriptor of " + what_);
    owner_ = Owner<cudnnBackendDescriptor_t, cudnnBackendDestroyDescriptor>(raw);
  }

  template <typename T>
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::span<const T> values) {
    check_cudnn(cudnnBackendSetAttribute(get(), name, type, static_cast<std::int64_t>(values.size()), values.data()),
                fmt::format("cudnnBackendSetAttribute {} of {}", static_cast<int>(name), what_));
    return *this;
  }
  template <typename T>
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, T value) {
    return set(name, type, std::span<const T>(&value, 1));
  }
  Descriptor& set_integers(cudnnBackendAttributeName_t name, const std::vector<std::int64_t>& values) {
    return set(name, CUDNN_TYPE_INT64, std::span(values));
  }
  Descriptor& set_descriptor(cudnnBackendAttributeName_t name, const Descriptor& value) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value.get());
  }
  Descriptor& finalize() {
    check_cudnn(try_finalize(), "cudnnBackendFinalize of " + what_);
    return *this;
  }
  cudnnStatus_t try_finalize() { return cudnnBackendFinalize(get()); }

  // Reads up to values.size() elements; returns how many there were.
  template <typename T>
  std::int64_t read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::span<T> values) const {
    std::int64_t count = 0;
    check_cudnn(cudnnBackendGetAttribute(get(), name, type, static_cast<std::int64_t>(values.size()), &count, values.data()),
                fmt::format("cudnnBackendGetAttribute {} of {}", static_cast<int>(name), what_));
    return count;
  }

  cudnnBackendDescriptor_t get() const { return owner_.get(); }

 private:
  std::string what_;
  Owner<cudnnBackendDescriptor_t, cudnnBackendDestroyDescriptor> owner_;
};

constexpr std::int64_t kX = 'x';
constexpr std::int64_t kWeight = 'w';
constexpr std::int64_t kY = 'y';

cudnnDataType_t data_type(DType dtype) {
  return dtype == DType::f16 ? CUDNN_DATA_HALF : dtype == DType::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

// Dimensions are logical (N,C,H,W or O,I,H,W), the layout channels-last.
Descriptor tensor(std::int64_t id, DType dtype, std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
  Descriptor result(CUDNN_BACKEND_TENSOR_DESCRIPTOR, fmt::format("tensor {}", static_cast<char>(id)));
  result.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, data_type(dtype))
      .set_integers(CUDNN_ATTR_TENSOR_DIMENSIONS, {n, c, h, w})
      .set_integers(CUDNN_ATTR_TENSOR_STRIDES, {h * w * c, 1, w * c, c})
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, std::int64_t{16})
      .finalize();
  return result;
}

Descriptor convolution(const ops::Conv2dGeometry& g) {
  Descriptor result(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "convolution");
  result.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, std::int64_t{2})
      .set_integers(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {g.padding_height, g.padding_width})
      .set_integers(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, {g.padding_height, g.padding_width})
      .set_integers(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {g.stride_height, g.stride_width})
      .set_integers(CUDNN_ATTR_CONVOLUTION_DILATIONS, {g.dilation_height, g.dilation_width})
      .finalize();
  return result;
}

struct OperationNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t convolution, x, weight, y, alpha, beta;
};

OperationNames operation_names(ConvolutionKind kind) {
  switch (kind) {
    case ConvolutionKind::grad_input:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case ConvolutionKind::grad_weight:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    case ConvolutionKind::forward:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
}

}  // namespace

// A graph of the one operation, and later the engine chosen for it. Everything that a finalized descriptor refers to is kept.
class ConvolutionPlan {
 public:
  ConvolutionPlan(cudnnHandle_t handle, const ConvolutionProblem& problem)
      : x_(tensor(kX, problem.dtype, problem.geometry.batch, problem.geometry.in_channels, problem.geometry.in_height,
                  problem.geometry.in_width)),
        weight_(tensor(kWeight, problem.dtype, problem.geometry.out_channels,
                       problem.geometry.in_channels / problem.geometry.groups, problem.geometry.kernel_height,
                       problem.geometry.kernel_width)),
        y_(tensor(kY, problem.dtype, problem.geometry.batch, problem.geometry.out_channels, problem.geometry.out_height,
                  problem.geometry.out_width)),
        convolution_(convolution(problem.geometry)),
        operation_(operation_names(problem.kind).type, "convolution operation"),
        graph_(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "operation graph") {
    const OperationNames names = operation_names(problem.kind);
    operation_.set_descriptor(names.convolution, convolution_)
        .set_descriptor(names.x, x_)
        .set_descriptor(names.weight, weight_)
        .set_descriptor(names.y, y_)
        .set(names.alpha, CUDNN_TYPE_FLOAT, 1.0F)
        .set(names.beta, CUDNN_TYPE_FLOAT, 0.0F)
        .finalize();
    graph_.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle)
        .set_descriptor(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation_)
        .finalize();
  }

  const Descriptor& graph() const { return graph_; }
  const Descriptor& executable() const { return *executable_; }

  void use(Descriptor config, Descriptor executable) {
    config_ = std::move(config);
    executable_ = std::move(executable);
  }

 private:
  Descriptor x_, weight_, y_, convolution_, operation_, graph_;
  std::optional<Descriptor> config_, executable_;
};

namespace {

// cuDNN's suggestions for the graph, best first; empty when it has none in that mode.
std::vector<Descriptor> suggestions(const Descriptor& graph, cudnnBackendHeurMode_t mode) {
  Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "engine heuristic");
  heuristic.set_descriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (heuristic.try_finalize() != CUDNN_STATUS_SUCCESS) return {};
  const std::int64_t count =
      heuristic.read(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, std::span<cudnnBackendDescriptor_t>());
  std::vector<Descriptor> configs;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < count; ++i) {
    configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "engine configuration");
    raw.push_back(configs.back().get());
  }
  if (count == 0) return {};
  const std::int64_t filled = heuristic.read(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, std::span(raw));
  configs.erase(configs.begin() + std::min(filled, count), configs.end());
  return configs;
}

struct EngineNotes {
  std::int64_t number = 0;
  std::string objection;  // why its numerics are not acceptable; empty: they are
  bool compiles_at_run_time = false;
};

EngineNotes notes_of(const Descriptor& config, DType dtype, bool allow_tf32) {
  const Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR, "engine");
  cudnnBackendDescriptor_t raw = engine.get();  // filled, not replaced
  config.read(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, std::span(&raw, 1));

  EngineNotes notes;
  engine.read(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, std::span(&notes.number, 1));
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> numerical{};
  const std::int64_t numerical_count =
      engine.read(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, std::span<cudnnBackendNumericalNote_t>(numerical));
  for (std::int64_t i = 0; i < std::min<std::int64_t>(numerical_count, CUDNN_NUMERICAL_NOTE_TYPE_COUNT); ++i) {
    switch (numerical[static_cast<std::size_t>(i)]) {
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
        // For f32 operands that means TF32.
        if (dtype == DType::f32 && !allow_tf32) notes.objection = "TF32";
        break;
      case CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP:
        break;
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
        notes.objection = "not deterministic";
        break;
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
        notes.objection = "rounds its inputs";
        break;
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
        notes.objection = "sums in less than f32";
        break;
      default:
        notes.objection = "Winograd or FFT";
        break;
    }
  }
  std::array<cudnnBackendBehaviorNote_t, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT> behavior{};
  const std::int64_t behavior_count =
      engine.read(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, std::span<cudnnBackendBehaviorNote_t>(behavior));
  for (std::int64_t i = 0; i < std::min<std::int64_t>(behavior_count, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT); ++i) {
    if (behavior[static_cast<std::size_t>(i)] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) notes.compiles_at_run_time = true;
  }
  return notes;
}

Convolutions::Choice choose_engine(cudnnHandle_t handle, const ConvolutionProblem& problem, const CudaOptions& options) {
  auto plan = std::make_shared<ConvolutionPlan>(handle, problem);
  std::vector<Descriptor> configs = suggestions(plan->graph(), CUDNN_HEUR_MODE_A);
  for (Descriptor& config : suggestions(plan->graph(), CUDNN_HEUR_MODE_FALLBACK)) configs.push_back(std::move(config));

  struct Candidate {
    Descriptor* config;
    EngineNotes notes;
  };
  std::vector<Candidate> candidates;
  std::vector<std::string> objections;
  for (Descriptor& config : configs) {
    Candidate candidate{&config, notes_of(config, problem.dtype, options.allow_tf32)};
    if (candidate.notes.objection.empty()) {
      candidates.push_back(std::move(candidate));
    } else {
      objections.push_back(fmt::format("engine {}: {}", candidate.notes.number, candidate.notes.objection));
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.notes.compiles_at_run_time < b.notes.compiles_at_run_time;
  });

  Convolutions::Choice best;
  for (const Candidate& candidate : candidates) {
    Descriptor executable(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, fmt::format("plan of engine {}", candidate.notes.number));
    executable.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle)
        .set_descriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, *candidate.config);
    if (executable.try_finalize() != CUDNN_STATUS_SUCCESS) {
      objections.push_back(fmt::format("engine {}: does not take this problem", candidate.notes.number));
      continue;
    }
    std::int64_t workspace = 0;
    executable.read(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, std::span(&workspace, 1));
    if (best.plan && Bytes(workspace) >= best.workspace) continue;
    plan->use(std::move(*candidate.config), std::move(executable));
    best = {.plan = plan, .refusal = {}, .workspace = Bytes(workspace), .engine = fmt::format("{}", candidate.notes.number)};
    if (best.workspace <= problem.workspace_limit.value_or(options.workspace_limit)) break;
  }
  if (!best.plan) {
    best.refusal = objections.empty() ? "cuDNN suggests no engine"
                                      : fmt::format("none of cuDNN's engines will do: {}", fmt::join(objections, ", "));
  }
  return best;
}

std::string key_of(const ConvolutionProblem& problem) {
  const ops::Conv2dGeometry& g = problem.geometry;
  return fmt::format("{} {} {}x{}x{}x{} {}x{}x{} k{}x{} s{}x{} p{}x{} d{}x{} g{} {}", static_cast<int>(problem.kind),
                     name_of(problem.dtype), g.batch, g.in_channels, g.in_height, g.in_width, g.out_channels, g.out_height,
                     g.out_width, g.kernel_height, g.kernel_width, g.stride_height, g.stride_width, g.padding_height,
                     g.padding_width, g.dilation_height, g.dilation_width, g.groups,
                     problem.workspace_limit ? problem.workspace_limit->count() : -1);
}

class BoundConvolution final : public BoundKernel {
 public:
  BoundConvolution(std::shared_ptr<const Convolutions> library, cudnnHandle_t handle, std::shared_ptr<const ConvolutionPlan> plan,
                   const ConvolutionOperands& operands, void* workspace)
      : library_(std::move(library)),
        handle_(handle),
        plan_(std::move(plan)),
        variant_(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "variant pack") {
    const std::array<void*, 3> pointers{operands.x, operands.weight, operands.y};
    const std::array<std::int64_t, 3> ids{kX, kWeight, kY};
    variant_.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, std::span<void* const>(pointers))
        .set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, std::span<const std::int64_t>(ids))
        .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace)
        .finalize();
  }
  void run() override {
    check_cudnn(cudnnBackendExecute(handle_, plan_->executable().get(), variant_.get()), "cudnnBackendExecute of a convolution");
  }

 private:
  std::shared_ptr<const Convolutions> library_;  // owns the handle
  cudnnHandle_t handle_;
  std::shared_ptr<const ConvolutionPlan> plan_;
  Descriptor variant_;
};

}  // namespace

Convolutions::Convolutions(CudaDevice& device) : device_(device) {
  cudnnHandle_t handle = nullptr;
  check_cudnn(cudnnCreate(&handle), "cudnnCreate");
  handle_ = Handle(handle);
  check_cudnn(cudnnSetStream(handle, device.stream()), "cudnnSetStream");
}

Convolutions::~Convolutions() = default;

const Convolutions::Choice& Convolutions::choose(const ConvolutionProblem& problem) {
  const auto [entry, is_new] = choices_.try_emplace(key_of(problem));
  if (is_new) {
    try {
      entry->second = choose_engine(handle_.get(), problem, device_.options());
    } catch (const InternalError& error) {
      entry->second.refusal = error.what();
    }
  }
  return entry->second;
}

std::unique_ptr<BoundKernel> Convolutions::bind(const Choice& choice, const ConvolutionOperands& operands,
                                                std::span<std::byte> workspace) {
  SNUG_CHECK(choice.plan != nullptr, "cuDNN refused this convolution ({}), but the plan has it", choice.refusal);
  const std::span<std::byte> usable = on_library_boundary(workspace);
  if (Bytes(static_cast<std::int64_t>(usable.size())) < choice.workspace) {
    throw_user_error("a convolution was planned with {} bytes of workspace and cuDNN now wants {}; plan again with this version",
                     usable.size(), choice.workspace.count());
  }
  return std::make_unique<BoundConvolution>(shared_from_this(), handle_.get(), choice.plan, operands, usable.data());
}

}  // namespace snug::backends::cuda
