#include <algorithm>
#include <cstring>

#include "backends/cpu/parallel.h"
#include "backends/cpu/simd.h"
#include "backends/cpu/simd_loops.h"

// Element by element in memory order: any layout will do, so long as all operands have the same.

namespace snug::backends::cpu {

namespace {

// A cache line of floats: threads that write neighbouring parts do not share one.
constexpr std::int64_t kGrain = 16;

std::int64_t stored_floats(const Type& type) { return type.bytes().count() / 4; }

KernelMatch match_same_floats(const KernelQuery& query, std::size_t inputs) {
  const Type& first = query.outputs[0];
  if (first.dtype != DType::f32 || first.storage.kind != Storage::Kind::dense)
    return Refuse{to_string(first) + " is not dense f32"};
  for (std::size_t i = 0; i < inputs; ++i) {
    if (query.inputs[i] != first) return Refuse{to_string(query.inputs[i]) + " lies otherwise than " + to_string(first)};
  }
  return Accept{};
}

KernelMatch match_add(const KernelQuery& query) { return match_same_floats(query, 2); }
KernelMatch match_relu(const KernelQuery& query) { return match_same_floats(query, 1); }
KernelMatch match_relu_grad(const KernelQuery& query) { return match_same_floats(query, accumulates(query.attributes) ? 3 : 2); }

std::unique_ptr<BoundKernel> bind_add(const KernelArguments& arguments) {
  return add_floats(arguments.inputs[0].data, arguments.inputs[1].data, arguments.outputs[0].data,
                    stored_floats(arguments.outputs[0].type), arguments.threads);
}

std::unique_ptr<BoundKernel> bind_relu(const KernelArguments& arguments) {
  return make_bound([x = floats(arguments.inputs[0]), y = floats(arguments.outputs[0]),
                     count = stored_floats(arguments.outputs[0].type), threads = arguments.threads] {
    for_each_part(count, threads, kGrain, [&](int, Range part) { simd::relu(x + part.begin, y + part.begin, part.size()); });
  });
}

std::unique_ptr<BoundKernel> bind_relu_grad(const KernelArguments& arguments) {
  const float* sum = accumulates(arguments.attributes) ? floats(arguments.inputs[2]) : nullptr;
  return make_bound([dy = floats(arguments.inputs[0]), y = floats(arguments.inputs[1]), sum, dx = floats(arguments.outputs[0]),
                     count = stored_floats(arguments.outputs[0].type), threads = arguments.threads] {
    for_each_part(count, threads, kGrain, [&](int, Range part) {
      simd::relu_grad(dy + part.begin, y + part.begin, sum == nullptr ? nullptr : sum + part.begin, dx + part.begin, part.size());
    });
  });
}

}  // namespace

std::unique_ptr<BoundKernel> add_floats(const std::byte* a, const std::byte* b, std::byte* out, std::int64_t count, int threads) {
  return make_bound([a = reinterpret_cast<const float*>(a), b = reinterpret_cast<const float*>(b),
                     out = reinterpret_cast<float*>(out), count, threads] {
    const int parts = count < 4096 ? 1 : threads;
    for_each_part(count, parts, kGrain,
                  [&](int, Range part) { simd::add(a + part.begin, b + part.begin, out + part.begin, part.size()); });
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
