#include "backends/cuda/convolution/direct.h"

#include "backends/cuda/call.h"
#include "backends/cuda/convolution/conv_shape.h"
#include "backends/cuda/kernels.h"

namespace snug::backends::cuda {

namespace {

constexpr Signature kImages{.layouts = Layouts::images};

template <typename T>
std::unique_ptr<BoundKernel> bind_conv2d(const Call& call) {
  return call.launch([x = call.in<T>(0), weight = call.in<T>(1), bias = call.input_count() == 3 ? call.in<T>(2) : nullptr,
                      y = call.out<T>(0), shape = conv_shape(call.input_shape(0), call.input_shape(1), call.attributes())](
                         cudaStream_t stream) { launch::conv2d<T>(stream, x, weight, bias, y, shape); });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_conv2d_grad_input(const Call& call) {
  return call.launch([dy = call.in<T>(0), weight = call.in<T>(1), dx = call.out<T>(0),
                      shape = conv_shape(call.output_shape(0), call.input_shape(1), call.attributes())](cudaStream_t stream) {
    launch::conv2d_grad_input<T>(stream, dy, weight, dx, shape);
  });
}

template <typename T>
std::unique_ptr<BoundKernel> bind_conv2d_grad_weight(const Call& call) {
  return call.launch([dy = call.in<T>(0), x = call.in<T>(1), dw = call.out<T>(0),
                      shape = conv_shape(call.input_shape(1), call.output_shape(0), call.attributes())](cudaStream_t stream) {
    launch::conv2d_grad_weight<T>(stream, dy, x, dw, shape);
  });
}

struct Matrix {
  std::uint32_t rows, columns;

  explicit Matrix(const Shape& shape)
      : rows(static_cast<std::uint32_t>(shape[0])), columns(static_cast<std::uint32_t>(shape[1])) {}
};

// y = x weight^T + bias
template <typename T>
std::unique_ptr<BoundKernel> bind_linear(const Call& call) {
  const Matrix x(call.input_shape(0));
  const Matrix weight(call.input_shape(1));
  const launch::ProductShape shape{.rows = x.rows,
                                   .columns = weight.rows,
                                   .depth = x.columns,
                                   .a_row = x.columns,
                                   .a_depth = 1,
                                   .b_depth = 1,
                                   .b_column = weight.columns,
                                   .result_row = weight.rows};
  return call.launch([a = call.in<T>(0), b = call.in<T>(1), bias = call.input_count() == 3 ? call.in<T>(2) : nullptr,
                      y = call.out<T>(0), shape](cudaStream_t stream) { launch::product<T>(stream, a, b, bias, y, shape); });
}

// dx = dy weight
template <typename T>
std::unique_ptr<BoundKernel> bind_linear_grad_input(const Call& call) {
  const Matrix dy(call.input_shape(0));
  const Matrix weight(call.input_shape(1));
  const launch::ProductShape shape{.rows = dy.rows,
                                   .columns = weight.columns,
                                   .depth = dy.columns,
                                   .a_row = dy.columns,
                                   .a_depth = 1,
                                   .b_depth = weight.columns,
                                   .b_column = 1,
                                   .result_row = weight.columns};
  return call.launch([a = call.in<T>(0), b = call.in<T>(1), dx = call.out<T>(0), shape](cudaStream_t stream) {
    launch::product<T>(stream, a, b, static_cast<const T*>(nullptr), dx, shape);
  });
}

// dweight = dy^T x
template <typename T>
std::unique_ptr<BoundKernel> bind_linear_grad_weight(const Call& call) {
  const Matrix dy(call.input_shape(0));
  const Matrix x(call.input_shape(1));
  const launch::ProductShape shape{.rows = dy.columns,
                                   .columns = x.columns,
                                   .depth = dy.rows,
                                   .a_row = 1,
                                   .a_depth = dy.columns,
                                   .b_depth = x.columns,
                                   .b_column = 1,
                                   .result_row = x.columns};
  return call.launch([a = call.in<T>(0), b = call.in<T>(1), dw = call.out<T>(0), shape](cudaStream_t stream) {
    launch::product<T>(stream, a, b, static_cast<const T*>(nullptr), dw, shape);
  });
}

KernelMatch match_fresh(const KernelQuery& query) {
  if (accumulates(query.attributes)) return Refuse{"this kernel makes only fresh values"};
  return match_operands(kImages, no_workspace, query);
}

template <auto BinderOf>
consteval KernelDef define_fresh(std::string_view name) {
  KernelDef kernel = define<BinderOf>(name);
  kernel.match = match_fresh;
  return kernel;
}

}  // namespace

constinit const KernelDef conv2d = define_fresh<[]<typename T>() { return bind_conv2d<T>; }>("cuda_conv2d");
constinit const KernelDef conv2d_grad_input =
    define_fresh<[]<typename T>() { return bind_conv2d_grad_input<T>; }>("cuda_conv2d_grad_input");
constinit const KernelDef conv2d_grad_weight =
    define_fresh<[]<typename T>() { return bind_conv2d_grad_weight<T>; }>("cuda_conv2d_grad_weight");
constinit const KernelDef linear = define_fresh<[]<typename T>() { return bind_linear<T>; }>("cuda_linear");
constinit const KernelDef linear_grad_input =
    define_fresh<[]<typename T>() { return bind_linear_grad_input<T>; }>("cuda_linear_grad_input");
constinit const KernelDef linear_grad_weight =
    define_fresh<[]<typename T>() { return bind_linear_grad_weight<T>; }>("cuda_linear_grad_weight");

}  // namespace snug::backends::cuda
