#include <algorithm>
#include <array>

#include "backends/reference/kernels.h"
#include "backends/reference/updates/adamw.h"
#include "backends/reference/updates/coded_block.h"

namespace snug::backends::reference {

namespace {

// By position in memory. Moments and what is added to them are floats for every T; the weight moves in T.
template <typename T>
void run_adamw_quantized(const Call& call) {
  const auto* weight = reinterpret_cast<const T*>(call.inputs[0].data);
  const auto* gradient = reinterpret_cast<const T*>(call.inputs[1].data);
  const auto bytes = [](const Operand& operand) { return reinterpret_cast<std::uint8_t*>(operand.data); };
  const std::array codes{bytes(call.inputs[3]), bytes(call.inputs[4])};
  const auto* scales = reinterpret_cast<const float*>(call.inputs[5].data);
  auto* new_weight = reinterpret_cast<T*>(call.outputs[0].data);
  auto* cleared = reinterpret_cast<T*>(call.outputs[1].data);
  const std::array new_codes{bytes(call.outputs[2]), bytes(call.outputs[3])};
  auto* new_scales = reinterpret_cast<float*>(call.outputs[4].data);
  const std::int64_t elements = call.inputs[3].type.elements();

  const bool skip = skips_update(call, 2, 7);
  const AdamwRule<float> moments(call, 6, 7);
  const AdamwRule<T> rule(call, 6, 7);
  parallel_for(call, ops::code_blocks(elements), [&](std::int64_t block) {
    const std::int64_t first = block * ops::kCodeBlock;
    const std::int64_t count = std::min(ops::kCodeBlock, elements - first);
    const std::array<float, 2> scale{scales[2 * block], scales[2 * block + 1]};
    std::array<CodedBlock, 2> moved{CodedBlock(ops::kSignedCode), CodedBlock(ops::kUnsignedCode)};
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t at = first + i;
      const T w = weight[at];
      float m = ops::decoded(ops::kSignedCode, codes[0][at], scale[0]);
      float v = ops::decoded(ops::kUnsignedCode, codes[1][at], scale[1]);
      moments.move(static_cast<float>(gradient[at]), m, v);
      new_weight[at] = skip ? w : rule.moved(w, static_cast<T>(m), static_cast<T>(v));
      cleared[at] = T{0};
      moved[0].set(i, m);
      moved[1].set(i, v);
    }
    for (const std::size_t which : {0, 1}) {
      new_scales[2 * block + static_cast<std::int64_t>(which)] = skip ? scale[which] : moved[which].scale();
      for (std::int64_t i = 0; i < count; ++i)
        new_codes[which][first + i] = skip ? codes[which][first + i] : moved[which].byte(i);
    }
  });
}

constexpr Signature kSignature{.inputs = {Element::real, Element::real, Element::scalars, Element::codes, Element::codes,
                                          Element::scales, Element::metrics, Element::metrics},
                               .outputs = {Element::real, Element::real, Element::codes, Element::codes, Element::scales}};

}  // namespace

constinit const KernelDef adamw_quantized =
    define<[]<typename T>() { return run_adamw_quantized<T>; }, kSignature>("reference_adamw_quantized");

}  // namespace snug::backends::reference
