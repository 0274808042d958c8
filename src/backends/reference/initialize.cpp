#include "backends/reference/call.h"
#include "backends/reference/kernels.h"
#include "base/half.h"
#include "ops/random_draws.h"

namespace snug::backends::reference {

namespace {

// The input only gives the type: its bytes are never read.
template <typename T>
void run_fill(const Call& call) {
  const Result<T> w = call.result<T>();
  const double value = call.attributes.real("value");
  parallel_for(call, w.elements(), [&](std::int64_t i) { w.set(i, value); });
}

void run_fill_halves(const Call& call) {
  auto* halves = reinterpret_cast<std::uint16_t*>(call.outputs[0].data);
  const std::uint16_t value = half_from_double(call.attributes.real("value"));
  parallel_for(call, call.outputs[0].type.elements(), [&](std::int64_t i) { halves[i] = value; });
}

// draw(seed, key, logical element) times `spread`.
template <typename T, typename Draw>
void fill_with_draws(const Call& call, double spread, const Draw& draw) {
  const Result<T> w = call.result<T>();
  const std::uint64_t seed = call.scalars(1).seed;
  const auto key = static_cast<std::uint64_t>(call.attributes.integer("key"));
  const PositionMap to_logical = PositionMap::to_row_major(call.outputs[0].type);
  parallel_for(call, w.elements(),
               [&](std::int64_t i) { w.set(i, spread * draw(seed, key, static_cast<std::uint64_t>(to_logical(i)))); });
}

template <typename T>
void run_init_normal(const Call& call) {
  fill_with_draws<T>(call, call.attributes.real("std"), ops::draw_init_normal);
}

template <typename T>
void run_init_uniform(const Call& call) {
  fill_with_draws<T>(call, call.attributes.real("bound"), ops::draw_init_uniform);
}

constexpr Signature kDrawn{.inputs = {Element::real, Element::scalars}};
constexpr Signature kBytes{.inputs = {Element::codes}, .outputs = {Element::codes}};
constexpr Signature kHalves{.inputs = {Element::halves}, .outputs = {Element::halves}};

// What is filled, by its type.
const Signature& filled(const Type& type) {
  static constexpr Signature kReals;
  return type.dtype == DType::u8 ? kBytes : type.dtype == DType::f16 ? kHalves : kReals;
}

}  // namespace

// For real numbers and for what starts as zeros: codes, moments under a scale.
constinit const KernelDef fill{.name = "reference_fill",
                               .op = "fill",
                               .match = [](const KernelQuery& query) { return match_operands(filled(query.outputs[0]), query); },
                               .bind =
                                   [](const KernelArguments& arguments) {
                                     const Signature& signature = filled(arguments.outputs[0].type);
                                     if (&signature == &kBytes)
                                       return bind_function<run_fill<std::uint8_t>>(signature, arguments);
                                     if (&signature == &kHalves) return bind_function<run_fill_halves>(signature, arguments);
                                     return bind_function<[]<typename T>() { return run_fill<T>; }>(signature, arguments);
                                   }};
constinit const KernelDef init_normal = define<[]<typename T>() { return run_init_normal<T>; }, kDrawn>("reference_init_normal");
constinit const KernelDef init_uniform =
    define<[]<typename T>() { return run_init_uniform<T>; }, kDrawn>("reference_init_uniform");

}  // namespace snug::backends::reference
