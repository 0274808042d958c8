#include <algorithm>

#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/simd/loops.h"

// The ReLU's gradient from one bit per element, in memory order.

namespace snug::backends::cpu {

namespace {

// Elements whose bits fill a cache line: threads that write neighboring bits do not share one.
constexpr std::int64_t kGrain = 512;

KernelMatch match_in_order(const Type& reals, const Type& bits) {
  if (!is_stored(reals.dtype)) return Refuse{to_string(reals) + " is not f32, bf16 or f16"};
  if (reals.layout.kind == Layout::Kind::opaque || reals.layout != bits.layout)
    return Refuse{to_string(bits) + " lies otherwise than " + to_string(reals)};
  return Accept{};
}

KernelMatch match_sign_bits(const KernelQuery& query) { return match_in_order(query.inputs[0], query.outputs[0]); }

KernelMatch match_relu_grad_bits(const KernelQuery& query) {
  for (std::size_t i = 0; i < query.inputs.size(); ++i) {
    if (i != 1 && query.inputs[i] != query.outputs[0])
      return Refuse{to_string(query.inputs[i]) + " lies otherwise than " + to_string(query.outputs[0])};
  }
  return match_in_order(query.outputs[0], query.inputs[1]);
}

std::unique_ptr<BoundKernel> bind_sign_bits(const KernelArguments& arguments) {
  return with_storage(arguments.inputs[0].type.dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([y = elements<T>(arguments.inputs[0]), bits = reinterpret_cast<std::uint8_t*>(arguments.outputs[0].data),
                       count = arguments.inputs[0].type.elements(), threads = arguments.threads] {
      for_each_part(count, threads, kGrain,
                    [&](int, Range part) { simd::bit_loops<T>().sign_bits(y + part.begin, bits + part.begin / 8, part.size()); });
    });
  });
}

std::unique_ptr<BoundKernel> bind_relu_grad_bits(const KernelArguments& arguments) {
  return with_storage(arguments.outputs[0].type.dtype, [&]<typename T>(T /*tag*/) {
    const T* sum = accumulates(arguments.attributes) ? elements<T>(arguments.inputs[2]) : nullptr;
    return make_bound(
        [dy = elements<T>(arguments.inputs[0]), bits = reinterpret_cast<const std::uint8_t*>(arguments.inputs[1].data), sum,
         dx = elements<T>(arguments.outputs[0]), count = arguments.outputs[0].type.elements(), threads = arguments.threads] {
          for_each_part(count, threads, kGrain, [&](int, Range part) {
            simd::bit_loops<T>().relu_grad_bits(dy + part.begin, bits + part.begin / 8,
                                                sum == nullptr ? nullptr : sum + part.begin, dx + part.begin, part.size());
          });
        });
  });
}

}  // namespace

constinit const KernelDef simd_sign_bits{
    .name = "simd_sign_bits", .op = "sign_bits", .match = match_sign_bits, .bind = bind_sign_bits};
constinit const KernelDef simd_relu_grad_bits{
    .name = "simd_relu_grad_bits", .op = "relu_grad_bits", .match = match_relu_grad_bits, .bind = bind_relu_grad_bits};

}  // namespace snug::backends::cpu
