#include <dlfcn.h>
#include <stdexcept>
#include <string>

#include <cublasLt.h>
#include <cuda_fp16.h>
#include <cudnn.h>

#include "driver_bytes/calls.h"

namespace snug::driver_bytes {

namespace {

constexpr int kSize = 128;

void check(int status, const char* call) {
  if (status != 0) throw std::runtime_error(std::string(call) + " failed with status " + std::to_string(status));
}

// Three pieces in one allocation, which is of 2 MiB at least anyway.
class Operands {
 public:
  Operands() { check(cudaMalloc(&memory_, 3 * kBytes), "cudaMalloc"); }
  ~Operands() { cudaFree(memory_); }
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;
  void* operator[](int i) const { return static_cast<char*>(memory_) + i * kBytes; }

 private:
  static constexpr std::size_t kBytes = std::size_t{512} << 10U;
  void* memory_ = nullptr;
};

}  // namespace

void check(cudaError_t status, const char* call) {
  if (status != cudaSuccess) throw std::runtime_error(std::string(call) + " failed: " + cudaGetErrorString(status));
}

void use_cublaslt(Listener listener) {
  const Operands operands;
  listener("2 MiB for operands");
  cublasLtHandle_t handle = nullptr;
  check(cublasLtCreate(&handle), "cublasLtCreate");
  listener("cuBLASLt handle");
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t layout = nullptr;
  check(cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
  check(cublasLtMatrixLayoutCreate(&layout, CUDA_R_16F, kSize, kSize, kSize), "cublasLtMatrixLayoutCreate");
  const float one = 1;
  const float zero = 0;
  check(cublasLtMatmul(handle, product, &one, operands[0], layout, operands[1], layout, &zero, operands[2], layout, operands[2],
                       layout, nullptr, nullptr, 0, nullptr),
        "cublasLtMatmul");
  listener("product by cuBLASLt");
  check(cublasLtMatrixLayoutDestroy(layout), "cublasLtMatrixLayoutDestroy");
  check(cublasLtMatmulDescDestroy(product), "cublasLtMatmulDescDestroy");
  check(cublasLtDestroy(handle), "cublasLtDestroy");
  listener("cuBLASLt handle given back");
}

void use_cublas(Listener listener) {
  void* library = dlopen("libcublas.so.13", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  using Handle = void*;
  const auto create = reinterpret_cast<int (*)(Handle*)>(dlsym(library, "cublasCreate_v2"));
  const auto destroy = reinterpret_cast<int (*)(Handle)>(dlsym(library, "cublasDestroy_v2"));
  const auto product = reinterpret_cast<int (*)(Handle, int, int, int, int, int, const float*, const float*, int, const float*,
                                                int, const float*, float*, int)>(dlsym(library, "cublasSgemm_v2"));
  if (create == nullptr || destroy == nullptr || product == nullptr) return;
  const Operands operands;
  listener("2 MiB for operands");
  Handle handle = nullptr;
  check(create(&handle), "cublasCreate");
  listener("cuBLAS handle");
  const float one = 1;
  const float zero = 0;
  check(product(handle, 0, 0, kSize, kSize, kSize, &one, static_cast<float*>(operands[0]), kSize,
                static_cast<float*>(operands[1]), kSize, &zero, static_cast<float*>(operands[2]), kSize),
        "cublasSgemm");
  listener("product by cuBLAS");
  check(destroy(handle), "cublasDestroy");
  listener("cuBLAS handle given back");
}

void use_cudnn(Listener listener) {
  const Operands operands;
  listener("2 MiB for operands");
  cudnnHandle_t handle = nullptr;
  check(cudnnCreate(&handle), "cudnnCreate");
  listener("cuDNN handle");
  cudnnTensorDescriptor_t image = nullptr;
  cudnnFilterDescriptor_t weight = nullptr;
  cudnnConvolutionDescriptor_t convolution = nullptr;
  check(cudnnCreateTensorDescriptor(&image), "cudnnCreateTensorDescriptor");
  check(cudnnSetTensor4dDescriptor(image, CUDNN_TENSOR_NHWC, CUDNN_DATA_HALF, 4, 32, 16, 16), "cudnnSetTensor4dDescriptor");
  check(cudnnCreateFilterDescriptor(&weight), "cudnnCreateFilterDescriptor");
  check(cudnnSetFilter4dDescriptor(weight, CUDNN_DATA_HALF, CUDNN_TENSOR_NHWC, 32, 32, 3, 3), "cudnnSetFilter4dDescriptor");
  check(cudnnCreateConvolutionDescriptor(&convolution), "cudnnCreateConvolutionDescriptor");
  check(cudnnSetConvolution2dDescriptor(convolution, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
        "cudnnSetConvolution2dDescriptor");
  check(cudnnSetConvolutionMathType(convolution, CUDNN_TENSOR_OP_MATH), "cudnnSetConvolutionMathType");
  const float one = 1;
  const float zero = 0;
  check(cudnnConvolutionForward(handle, &one, image, operands[0], weight, operands[1], convolution,
                                CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0, &zero, image, operands[2]),
        "cudnnConvolutionForward");
  listener("convolution by cuDNN");
  check(cudnnDestroyConvolutionDescriptor(convolution), "cudnnDestroyConvolutionDescriptor");
  check(cudnnDestroyFilterDescriptor(weight), "cudnnDestroyFilterDescriptor");
  check(cudnnDestroyTensorDescriptor(image), "cudnnDestroyTensorDescriptor");
  check(cudnnDestroy(handle), "cudnnDestroy");
  listener("cuDNN handle given back");
}

}  // namespace snug::driver_bytes
