#include <algorithm>

#include "backends/reference/call.h"
#include "backends/reference/kernels.h"

namespace snug::backends::reference {

namespace {

// Zero and below give +0; NaN passes through, so that an overflow stays visible.
template <typename T>
void run_relu(const Call& call) {
  const auto x = call.elementwise<T>(0);
  const Result<T> y = call.result<T>();
  parallel_for(call, y.elements(), [&](std::int64_t i) {
    const T value = x[i];
    y.set(i, value <= 0 ? T{0} : value);
  });
}

template <typename T>
void run_relu_grad(const Call& call) {
  const auto dy = call.elementwise<T>(0);
  const auto y = call.elementwise<T>(1);
  const Result<T> dx = call.result<T>();
  parallel_for(call, dx.elements(), [&](std::int64_t i) { dx.set(i, y[i] > 0 ? dy[i] : T{0}); });
}

template <typename T>
void run_relu_grad_bits(const Call& call) {
  const auto dy = call.elementwise<T>(0);
  const Operand& bits = call.inputs[1];
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(bits.data);
  const PositionMap to_bit(call.outputs[0].type, bits.type);
  const Result<T> dx = call.result<T>();
  parallel_for(call, dx.elements(), [&](std::int64_t i) { dx.set(i, bit_at(bytes, to_bit(i)) ? dy[i] : T{0}); });
}

// A thread writes whole bytes; the bits after the last element are 0.
template <typename T>
void run_sign_bits(const Call& call) {
  const auto y = call.elementwise<T>(0);
  auto* bytes = reinterpret_cast<std::uint8_t*>(call.outputs[0].data);
  const std::int64_t elements = call.outputs[0].type.elements();
  parallel_for(call, (elements + 7) / 8, [&](std::int64_t byte) {
    unsigned packed = 0;
    for (std::int64_t i = byte * 8; i < std::min(elements, byte * 8 + 8); ++i) packed |= (y[i] > 0 ? 1U : 0U) << (i % 8);
    bytes[byte] = static_cast<std::uint8_t>(packed);
  });
}

constexpr Signature kFromBits{.inputs = {Element::real, Element::bits}};
constexpr Signature kToBits{.outputs = {Element::bits}};

}  // namespace

constinit const KernelDef relu = define<[]<typename T>() { return run_relu<T>; }>("reference_relu");
constinit const KernelDef relu_grad = define<[]<typename T>() { return run_relu_grad<T>; }>("reference_relu_grad");
constinit const KernelDef relu_grad_bits =
    define<[]<typename T>() { return run_relu_grad_bits<T>; }, kFromBits>("reference_relu_grad_bits");
constinit const KernelDef sign_bits = define<[]<typename T>() { return run_sign_bits<T>; }, kToBits>("reference_sign_bits");

}  // namespace snug::backends::reference
