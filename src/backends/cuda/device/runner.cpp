#include "backends/cuda/device/runner.h"

#include "base/error.h"

namespace snug::backends::cuda {

namespace {

class CudaRunner final : public SectionRunner {
 public:
  CudaRunner(CudaDevice& device, std::vector<std::unique_ptr<BoundKernel>> kernels)
      : device_(device), kernels_(std::move(kernels)) {}
  ~CudaRunner() override {
    // The graph may still be running.
    static_cast<void>(cudaStreamSynchronize(device_.stream()));
  }
  CudaRunner(const CudaRunner&) = delete;
  CudaRunner& operator=(const CudaRunner&) = delete;

  void run() override {
    if (kernels_.empty()) return;
    device_.make_current();
    if (!warm_) device_.close_unused_libraries();  // all sections are bound before one runs
    if (!device_.options().use_graphs || !warm_) {
      enqueue();
      warm_ = true;
      return;
    }
    if (!executable_) capture();
    SNUG_CUDA_CALL(cudaGraphLaunch(executable_.get(), device_.stream()));
  }

  void run_node(std::size_t node) override {
    device_.make_current();
    kernels_[node]->run();
    device_.wait();
  }

 private:
  void enqueue() {
    for (const auto& kernel : kernels_) kernel->run();
  }

  void capture() {
    SNUG_CUDA_CALL(cudaStreamBeginCapture(device_.stream(), cudaStreamCaptureModeThreadLocal));
    Graph graph;
    try {
      enqueue();
    } catch (...) {
      // The stream must leave capture mode before anything else can use it.
      cudaGraph_t broken = nullptr;
      static_cast<void>(cudaStreamEndCapture(device_.stream(), &broken));
      graph = Graph(broken);
      cudaGetLastError();
      throw;
    }
    cudaGraph_t recorded = nullptr;
    SNUG_CUDA_CALL(cudaStreamEndCapture(device_.stream(), &recorded));
    graph = Graph(recorded);
    cudaGraphExec_t executable = nullptr;
    SNUG_CUDA_CALL(cudaGraphInstantiate(&executable, graph.get(), 0));
    executable_ = GraphExec(executable);
    SNUG_CUDA_CALL(cudaGraphUpload(executable_.get(), device_.stream()));
  }

  CudaDevice& device_;
  std::vector<std::unique_ptr<BoundKernel>> kernels_;
  bool warm_ = false;
  GraphExec executable_;
};

}  // namespace

std::unique_ptr<SectionRunner> make_cuda_runner(CudaDevice& device, std::vector<std::unique_ptr<BoundKernel>> kernels) {
  return std::make_unique<CudaRunner>(device, std::move(kernels));
}

}  // namespace snug::backends::cuda
