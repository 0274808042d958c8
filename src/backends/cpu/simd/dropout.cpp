#include <cmath>

#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/simd/loops.h"
#include "ir/example_rows.h"
#include "ir/scalars.h"
#include "ops/common.h"
#include "ops/random_draws.h"

// Dropout, forward and backward alike, of values that lie in logical order: four neighbors then share one block of the
// generator.

namespace snug::backends::cpu {

namespace {

KernelMatch match_dropout(const KernelQuery& query) {
  const Type& x = query.inputs[0];
  if (!is_stored(x.dtype)) return Refuse{to_string(x) + " is not f32, bf16 or f16"};
  if (query.outputs[0] != x) return Refuse{to_string(query.outputs[0]) + " lies otherwise than " + to_string(x)};
  if (!ops::lies_in_logical_order(x))
    return Refuse{to_string(x) + " does not lie in logical order, in which the draws are counted"};
  return Accept{};
}

std::unique_ptr<BoundKernel> bind_dropout(const KernelArguments& arguments) {
  const Type& type = arguments.outputs[0].type;
  const double probability = arguments.attributes.real("probability");
  // A word w keeps its element when w / 2^32 >= probability. Both sides are exact as doubles, so this is equivalent.
  const auto threshold = static_cast<std::uint64_t>(std::ceil(probability * 4294967296.0));
  return with_storage(type.dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([x = elements<T>(arguments.inputs[0]), y = elements<T>(arguments.outputs[0]), count = type.elements(),
                       per_example = static_cast<std::uint64_t>(elements_per_example(type, arguments.attributes)),
                       kept = 1.0 - probability, threshold, key = static_cast<std::uint64_t>(arguments.attributes.integer("key")),
                       scalars = reinterpret_cast<const Scalars*>(arguments.inputs[1].data), threads = arguments.threads] {
      const simd::DropoutRule rule{
          .seed = scalars->seed, .counter_high = ops::counter_high(key, scalars->step), .threshold = threshold, .kept = kept};
      const std::uint64_t first = scalars->first_example * per_example;
      for_each_part(count, threads, 64, [&](int, Range part) {
        simd::bit_loops<T>().dropout(rule, first + static_cast<std::uint64_t>(part.begin), x + part.begin, y + part.begin,
                                     part.size());
      });
    });
  });
}

}  // namespace

constinit const KernelDef simd_dropout{.name = "simd_dropout", .op = "dropout", .match = match_dropout, .bind = bind_dropout};

}  // namespace snug::backends::cpu
