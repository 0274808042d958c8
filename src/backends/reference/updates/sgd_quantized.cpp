#include <algorithm>
#include <cmath>

#include "backends/reference/call.h"
#include "backends/reference/kernels.h"
#include "backends/reference/updates/coded_block.h"

namespace snug::backends::reference {

namespace {

// By position in memory. A momentum and what is added to it are floats for every T.
template <typename T>
void run_sgd_quantized(const Call& call) {
  const auto* weight = reinterpret_cast<const T*>(call.inputs[0].data);
  const auto* gradient = reinterpret_cast<const T*>(call.inputs[1].data);
  const auto* codes = reinterpret_cast<const std::uint8_t*>(call.inputs[3].data);
  const auto* scales = reinterpret_cast<const float*>(call.inputs[4].data);
  auto* new_weight = reinterpret_cast<T*>(call.outputs[0].data);
  auto* cleared = reinterpret_cast<T*>(call.outputs[1].data);
  auto* new_codes = reinterpret_cast<std::uint8_t*>(call.outputs[2].data);
  auto* new_scales = reinterpret_cast<float*>(call.outputs[3].data);
  const std::int64_t elements = call.inputs[3].type.elements();

  const Scalars scalars = call.scalars(2);
  GradientNorm norm;
  if (call.inputs.size() == 6) std::memcpy(&norm, call.inputs[5].data, sizeof norm);
  const bool skip = scalars.skip_update != 0 || !std::isfinite(norm.factor);
  const auto gradient_scale = static_cast<float>(norm.factor / scalars.loss_scale);
  const auto learning_rate = static_cast<float>(scalars.learning_rate);
  const auto momentum = static_cast<float>(call.attributes.real("momentum"));
  const auto weight_decay = static_cast<float>(call.attributes.real("weight_decay"));
  const bool nesterov = call.attributes.integer("nesterov") != 0;
  parallel_for(call, ops::code_blocks(elements), [&](std::int64_t block) {
    const std::int64_t first = block * ops::kCodeBlock;
    const std::int64_t count = std::min(ops::kCodeBlock, elements - first);
    const float scale = scales[block];
    CodedBlock moved(ops::kSignedCode);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t at = first + i;
      const T w = weight[at];
      const auto g = static_cast<float>(gradient[at]);
      cleared[at] = T{0};
      new_weight[at] = w;
      if (skip) continue;
      const float step = (g * gradient_scale + 0.0F) + weight_decay * static_cast<float>(w);
      const float m = momentum * ops::decoded(ops::kSignedCode, codes[at], scale) + step;
      new_weight[at] = w - static_cast<T>(learning_rate * (nesterov ? step + momentum * m : m));
      moved.set(i, m);
    }
    new_scales[block] = skip ? scale : moved.scale();
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t at = first + i;
      new_codes[at] = skip ? codes[at] : moved.byte(i);
    }
  });
}

constexpr Signature kSignature{
    .inputs = {Element::real, Element::real, Element::scalars, Element::codes, Element::scales, Element::metrics}};

}  // namespace

constinit const KernelDef sgd_quantized{
    .name = "reference_sgd_quantised",
    .op = "sgd_quantised",
    .match =
        [](const KernelQuery& query) {
          // The outputs' types follow from the inputs.
          return match_operands(kSignature, {query.op, query.attributes, query.inputs, {}, query.threads, query.device});
        },
    .bind =
        [](const KernelArguments& arguments) {
          return bind_function<[]<typename T>() { return run_sgd_quantized<T>; }>(kSignature, arguments);
        }};

}  // namespace snug::backends::reference
