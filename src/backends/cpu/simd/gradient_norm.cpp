#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/simd/loops.h"

// The sum of a gradient's squares, for clipping and to check whether all of it is finite.

namespace snug::backends::cpu {

namespace {

constexpr std::int64_t kGrain = 32;  // a cache line of the narrowest elements

// Small tensors are not worth another thread.
int parts_of(const Type& type, int threads) { return stored_elements(type) < 4096 ? 1 : threads; }

// Everything stored, in memory order, for any layout: oneDNN keeps padding at zero, and a zero adds nothing.
KernelMatch match_sum(const KernelQuery& query) {
  if (!is_stored(query.inputs[0].dtype)) return Refuse{to_string(query.inputs[0]) + " is not f32, bf16 or f16"};
  const int parts = parts_of(query.inputs[0], query.threads);
  return Accept{.workspace = Bytes(parts == 1 ? 0 : parts * static_cast<std::int64_t>(sizeof(double)))};
}

std::unique_ptr<BoundKernel> bind_sum(const KernelArguments& arguments) {
  const Type& type = arguments.inputs[0].type;
  const auto* before = arguments.inputs.size() == 2 ? reinterpret_cast<const double*>(arguments.inputs[1].data) : nullptr;
  return with_storage(type.dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([x = elements<T>(arguments.inputs[0]), before, sum = reinterpret_cast<double*>(arguments.outputs[0].data),
                       partial = reinterpret_cast<double*>(arguments.workspace.data()), count = stored_elements(type),
                       parts = parts_of(type, arguments.threads)] {
      double total = 0;
      if (parts == 1) {
        total = simd::element_loops<T>().squares(x, count);
      } else {
        for_each_part(count, parts, kGrain, [&](int part, Range range) {
          partial[part] = simd::element_loops<T>().squares(x + range.begin, range.size());
        });
        for (int part = 0; part < parts; ++part) total += partial[part];
      }
      *sum = before == nullptr ? total : *before + total;
    });
  });
}

}  // namespace

constinit const KernelDef simd_sum_of_squares{
    .name = "simd_sum_of_squares", .op = "sum_of_squares", .match = match_sum, .bind = bind_sum};

}  // namespace snug::backends::cpu
