#include <algorithm>
#include <array>

#include "backends/reference/kernels.h"
#include "backends/reference/updates/adamw.h"
#include "base/half.h"
#include "ops/random_draws.h"
#include "ops/updates/sgd.h"

namespace snug::backends::reference {

namespace {

// By position in memory: the op demands one order of all operands. The weight is a float or a double, which no rounding moves.
template <typename T>
void run_adamw_scaled(const Call& call) {
  const auto* weight = reinterpret_cast<const T*>(call.inputs[0].data);
  const auto* gradient = reinterpret_cast<const T*>(call.inputs[1].data);
  const std::array<const std::uint16_t*, 2> moments{reinterpret_cast<const std::uint16_t*>(call.inputs[3].data),
                                                    reinterpret_cast<const std::uint16_t*>(call.inputs[4].data)};
  auto* new_weight = reinterpret_cast<T*>(call.outputs[0].data);
  auto* cleared = reinterpret_cast<T*>(call.outputs[1].data);
  const std::array<std::uint16_t*, 2> new_moments{reinterpret_cast<std::uint16_t*>(call.outputs[2].data),
                                                  reinterpret_cast<std::uint16_t*>(call.outputs[3].data)};
  const std::int64_t elements = call.inputs[0].type.elements();
  std::array<float, 2> scales{};
  std::memcpy(scales.data(), call.inputs[5].data, sizeof scales);

  const Scalars scalars = call.scalars(2);
  const bool skip = skips_update(call, 2, 7);
  const AdamwRule<T> rule(call, 6, 7);
  const auto moment = [&](std::size_t which, std::int64_t i) {
    return static_cast<T>(float_from_half(moments[which][i])) * static_cast<T>(scales[which]);
  };

  std::array<float, 2> new_scales = scales;
  if (!skip) {
    std::array<T, 2> largest{};
    const auto look_at = [&](T& most, T size) {
      if (std::isfinite(size)) most = std::max(most, std::abs(size));
    };
    for (std::int64_t i = 0; i < elements; ++i) {
      T m = moment(0, i), v = moment(1, i);
      rule.move(gradient[i], m, v);
      look_at(largest[0], m);
      look_at(largest[1], v);
    }
    for (std::size_t which : {0, 1}) new_scales[which] = ops::moment_scale(static_cast<float>(largest[which]));
  }
  const bool stochastic = ops::sgd_rounds_stochastically(call.attributes);
  const auto key = static_cast<std::uint64_t>(call.attributes.integer_or("key", 0));
  parallel_for(call, elements, [&](std::int64_t i) {
    T m = moment(0, i), v = moment(1, i);
    new_weight[i] = skip ? weight[i] : rule.step(weight[i], gradient[i], m, v);
    cleared[i] = T{0};
    const std::uint32_t word =
        stochastic ? ops::rounding_word(scalars.seed, scalars.step, key, static_cast<std::uint64_t>(i)) >> 16U : 0;
    const auto put = [&](std::size_t which, T number) {
      const auto value = static_cast<double>(number);
      new_moments[which][i] =
          skip
              ? moments[which][i]
              : half_from_double(stochastic ? static_cast<double>(ops::stochastic_half(static_cast<float>(value), word)) : value);
    };
    const T second = v / static_cast<T>(new_scales[1]);
    put(0, m / static_cast<T>(new_scales[0]));
    put(1, v > 0 && second < T{ops::kLeastStoredMoment} ? T{ops::kLeastStoredMoment} : second);
  });
  std::memcpy(call.outputs[4].data, new_scales.data(), sizeof new_scales);
}

constexpr Signature kSignature{.inputs = {Element::real, Element::real, Element::scalars, Element::halves, Element::halves,
                                          Element::single, Element::metrics, Element::metrics},
                               .outputs = {Element::real, Element::real, Element::halves, Element::halves, Element::single}};

}  // namespace

constinit const KernelDef adamw_scaled =
    define<[]<typename T>() { return run_adamw_scaled<T>; }, kSignature>("reference_adamw_scaled");

}  // namespace snug::backends::reference
