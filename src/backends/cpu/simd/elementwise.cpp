#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/pieces.h"
#include "backends/cpu/simd/loops.h"

// Element by element in memory order: any layout, as long as all operands have the same.

namespace snug::backends::cpu {

namespace {

// A cache line of the narrowest elements: threads that write neighboring parts do not share one.
constexpr std::int64_t kGrain = 32;

KernelMatch match_same(const KernelQuery& query, std::size_t inputs) {
  const Type& first = query.outputs[0];
  if (!is_stored(first.dtype)) return Refuse{to_string(first) + " is not f32, bf16 or f16"};
  for (std::size_t i = 0; i < inputs; ++i) {
    if (query.inputs[i] != first) return Refuse{to_string(query.inputs[i]) + " lies otherwise than " + to_string(first)};
  }
  return Accept{};
}

KernelMatch match_add(const KernelQuery& query) { return match_same(query, 2); }
KernelMatch match_relu(const KernelQuery& query) { return match_same(query, 1); }
KernelMatch match_relu_grad(const KernelQuery& query) { return match_same(query, accumulates(query.attributes) ? 3 : 2); }

std::unique_ptr<BoundKernel> bind_add(const KernelArguments& arguments) {
  const Type& type = arguments.outputs[0].type;
  return add_elements(type.dtype, arguments.inputs[0].data, arguments.inputs[1].data, arguments.outputs[0].data,
                      stored_elements(type), arguments.threads);
}

std::unique_ptr<BoundKernel> bind_relu(const KernelArguments& arguments) {
  const Type& type = arguments.outputs[0].type;
  return with_storage(type.dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([x = elements<T>(arguments.inputs[0]), y = elements<T>(arguments.outputs[0]), count = stored_elements(type),
                       threads = arguments.threads] {
      for_each_part(count, threads, kGrain,
                    [&](int, Range part) { simd::element_loops<T>().relu(x + part.begin, y + part.begin, part.size()); });
    });
  });
}

std::unique_ptr<BoundKernel> bind_relu_grad(const KernelArguments& arguments) {
  const Type& type = arguments.outputs[0].type;
  return with_storage(type.dtype, [&]<typename T>(T /*tag*/) {
    const T* sum = accumulates(arguments.attributes) ? elements<T>(arguments.inputs[2]) : nullptr;
    return make_bound([dy = elements<T>(arguments.inputs[0]), y = elements<T>(arguments.inputs[1]), sum,
                       dx = elements<T>(arguments.outputs[0]), count = stored_elements(type), threads = arguments.threads] {
      for_each_part(count, threads, kGrain, [&](int, Range part) {
        simd::element_loops<T>().relu_grad(dy + part.begin, y + part.begin, sum == nullptr ? nullptr : sum + part.begin,
                                           dx + part.begin, part.size());
      });
    });
  });
}

}  // namespace

std::unique_ptr<BoundKernel> add_elements(DType dtype, const std::byte* a, const std::byte* b, std::byte* out, std::int64_t count,
                                          int threads) {
  return with_storage(dtype, [&]<typename T>(T /*tag*/) {
    return make_bound(
        [a = reinterpret_cast<const T*>(a), b = reinterpret_cast<const T*>(b), out = reinterpret_cast<T*>(out), count, threads] {
          run_on_parts(count, threads, [&](std::int64_t first, std::int64_t size) {
            simd::element_loops<T>().add(a + first, b + first, out + first, size);
          });
        });
  });
}

std::unique_ptr<BoundKernel> widen_elements(DType dtype, const std::byte* from, float* to, std::int64_t count, int threads) {
  return with_storage(dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([from = reinterpret_cast<const T*>(from), to, count, threads] {
      run_on_parts(count, threads, [&](std::int64_t first, std::int64_t size) {
        simd::element_loops<T>().widen(from + first, to + first, size);
      });
    });
  });
}

std::unique_ptr<BoundKernel> narrow_elements(DType dtype, const float* from, std::byte* to, std::int64_t count, int threads) {
  return with_storage(dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([from, to = reinterpret_cast<T*>(to), count, threads] {
      run_on_parts(count, threads, [&](std::int64_t first, std::int64_t size) {
        simd::element_loops<T>().narrow(from + first, to + first, size);
      });
    });
  });
}

std::unique_ptr<BoundKernel> add_floats(DType dtype, const std::byte* sum, const float* fresh, std::byte* out, std::int64_t count,
                                        int threads) {
  return with_storage(dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([sum = reinterpret_cast<const T*>(sum), fresh, out = reinterpret_cast<T*>(out), count, threads] {
      run_on_parts(count, threads, [&](std::int64_t first, std::int64_t size) {
        simd::element_loops<T>().add_floats(sum + first, fresh + first, out + first, size);
      });
    });
  });
}

std::unique_ptr<BoundKernel> copy_bytes(const std::byte* source, std::byte* target, Bytes size) {
  return make_bound([source, target, bytes = static_cast<std::size_t>(size.count())] { std::memcpy(target, source, bytes); });
}

constinit const KernelDef simd_add{.name = "simd_add", .op = "add", .match = match_add, .bind = bind_add};
constinit const KernelDef simd_relu{.name = "simd_relu", .op = "relu", .match = match_relu, .bind = bind_relu};
constinit const KernelDef simd_relu_grad{
    .name = "simd_relu_grad", .op = "relu_grad", .match = match_relu_grad, .bind = bind_relu_grad};

}  // namespace snug::backends::cpu
