#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/reference/call.h"
#include "backends/reference/kernels.h"
#include "ir/example_rows.h"
#include "ops/packing.h"

namespace snug::backends::reference {

namespace {

struct Group {
  std::int64_t first, elements;
};

Group group_at(std::int64_t number, std::int64_t elements) {
  const std::int64_t first = number * ops::kPackGroup;
  return {.first = first, .elements = std::min(ops::kPackGroup, elements - first)};
}

// By position in memory, whatever the layout.
template <typename T>
void run_pack(const Call& call) {
  const auto* x = reinterpret_cast<const T*>(call.inputs[0].data);
  auto* codes = reinterpret_cast<std::uint8_t*>(call.outputs[0].data);
  auto* ranges = reinterpret_cast<ops::PackRange*>(call.outputs[1].data);
  const std::int64_t elements = call.inputs[0].type.elements();
  const std::int64_t bits = call.attributes.integer("bits");
  const auto key = static_cast<std::uint64_t>(call.attributes.integer("key"));
  const std::uint32_t levels = ops::pack_levels(bits);
  const std::int64_t per_example = elements_per_example(call.inputs[0].type, call.attributes);
  const Scalars scalars = call.scalars(1);
  parallel_for(call, ops::pack_groups(elements), [&](std::int64_t number) {
    const Group group = group_at(number, elements);
    const auto value = [&](std::int64_t i) { return static_cast<float>(x[group.first + i]); };
    float least = std::numeric_limits<float>::infinity();
    float most = -least;
    bool has_nan = false;
    for (std::int64_t i = 0; i < group.elements; ++i) {
      has_nan = has_nan || std::isnan(value(i));
      least = std::min(least, value(i));
      most = std::max(most, value(i));
    }
    const ops::PackRange range = ops::pack_range(least, most, has_nan, levels);
    const float inverse = ops::pack_inverse(range);
    ranges[number] = range;
    std::uint8_t* bytes = codes + ops::pack_bytes(group.first, bits);
    std::fill_n(bytes, ops::pack_bytes(group.elements, bits), std::uint8_t{0});
    const std::uint64_t first_block = ops::pack_first_block(scalars.first_example, per_example, number);
    for (std::int64_t i = 0; i < group.elements; ++i) {
      const PhiloxBlock block =
          philox(scalars.seed, first_block + static_cast<std::uint64_t>(i / 8), ops::pack_counter_high(key, scalars.step));
      const std::uint32_t code = ops::pack_code(value(i), range, inverse, levels, ops::pack_random(block, i));
      const ops::PackPlace place = ops::pack_place(i, group.elements, bits);
      bytes[place.byte] = static_cast<std::uint8_t>(bytes[place.byte] | (code << place.shift));
    }
  });
}

template <typename T>
void run_unpack(const Call& call) {
  const auto* codes = reinterpret_cast<const std::uint8_t*>(call.inputs[0].data);
  const auto* ranges = reinterpret_cast<const ops::PackRange*>(call.inputs[1].data);
  auto* x = reinterpret_cast<T*>(call.outputs[0].data);
  const std::int64_t elements = call.outputs[0].type.elements();
  const std::int64_t bits = call.attributes.integer("bits");
  parallel_for(call, ops::pack_groups(elements), [&](std::int64_t number) {
    const Group group = group_at(number, elements);
    const std::uint8_t* bytes = codes + ops::pack_bytes(group.first, bits);
    for (std::int64_t i = 0; i < group.elements; ++i) {
      const ops::PackPlace place = ops::pack_place(i, group.elements, bits);
      const std::uint32_t code = (static_cast<std::uint32_t>(bytes[place.byte]) >> place.shift) & ops::pack_levels(bits);
      x[group.first + i] = ops::unpack_code(code, ranges[number]);
    }
  });
}

constexpr Signature kPack{.inputs = {Element::real, Element::scalars}, .outputs = {Element::codes, Element::scales}};
constexpr Signature kUnpack{.inputs = {Element::codes, Element::scales}};

}  // namespace

constinit const KernelDef pack = define<[]<typename T>() { return run_pack<T>; }, kPack>("reference_pack");
constinit const KernelDef unpack = define<[]<typename T>() { return run_unpack<T>; }, kUnpack>("reference_unpack");

}  // namespace snug::backends::reference
