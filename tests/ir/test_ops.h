// A handful of ops that exist to test the IR by itself: the real ones stand above it.
//
//   make() {shape} -> f32          copy(x) -> y, in place          plain(x) -> y, no promise, may accumulate
//   sum(a, b) -> y, in either      view(x) {shape} -> y            pair(x) -> first, second, each in x
//   step(w, g) -> w, g, each in its own    cross(x) {host: 0|1} -> y, in either memory, in place
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/op.h"
#include "ir/text.h"
#include "ir/verify.h"

namespace snug::testing {

inline Shape shape_attribute(const OpCall& call) {
  return Shape(std::span<const std::int64_t>(call.attributes.integers("shape")));
}

inline std::vector<Type> infer_make(const OpCall& call) { return {{.dtype = DType::f32, .shape = shape_attribute(call)}}; }

template <std::size_t Inputs, std::size_t Outputs>
std::vector<Type> infer_like(const OpCall& call) {
  if (call.inputs.size() != Inputs) throw_user_error("got {} inputs; it takes {}", call.inputs.size(), Inputs);
  for (const Type& type : call.inputs) {
    if (type.shape != call.inputs[0].shape)
      throw_user_error("{} does not go with {}", to_string(type), to_string(call.inputs[0]));
  }
  std::vector<Type> outputs;
  for (std::size_t i = 0; i < Outputs; ++i) outputs.push_back(Inputs == Outputs ? call.inputs[i] : call.inputs[0]);
  return outputs;
}

inline std::vector<Type> infer_view(const OpCall& call) {
  Type type = call.inputs[0];
  type.shape = shape_attribute(call);
  return {type};
}

inline constexpr std::array<InPlacePromise, 1> kFirst{{{0, 0}}};
inline constexpr std::array<InPlacePromise, 2> kEither{{{0, 0}, {0, 1}}};
inline constexpr std::array<InPlacePromise, 2> kEach{{{0, 0}, {1, 1}}};
inline constexpr std::array<InPlacePromise, 2> kBothInFirst{{{0, 0}, {1, 0}}};
inline constexpr std::array<std::string_view, 2> kPairOutputs{"first", "second"};

inline MemorySpace crossed(const Attributes& attributes) {
  return attributes.integer_or("host", 0) == 1 ? MemorySpace::host : MemorySpace::device;
}

inline constexpr std::array<OpDef, 8> kTestOps{
    {{.name = "make", .infer = infer_make},
     {.name = "copy", .infer = infer_like<1, 1>, .in_place = kFirst},
     {.name = "plain", .infer = infer_like<1, 1>, .may_accumulate = true},
     {.name = "sum", .infer = infer_like<2, 1>, .in_place = kEither},
     {.name = "view", .infer = infer_view, .is_view = true},
     {.name = "pair", .infer = infer_like<1, 2>, .in_place = kBothInFirst, .outputs = kPairOutputs},
     {.name = "step", .infer = infer_like<2, 2>, .in_place = kEach},
     {.name = "cross", .infer = infer_like<1, 1>, .in_place = kFirst, .output_space = crossed}}};

inline const OpDef* find_test_op(std::string_view name) {
  for (const OpDef& op : kTestOps) {
    if (op.name == name) return &op;
  }
  return nullptr;
}

inline Program parse(std::string_view text) { return parse_program(text, find_test_op); }

// The defect's first line, without the node that is printed under it; "" when there is none.
inline std::string defect_of(const Program& program) {
  const std::string defect = find_defect(program).value_or("");
  return defect.substr(0, defect.find('\n'));
}

// A program of one section `micro` with the given nodes, and the states w, g : f32[4] and big : f32[8].
inline std::string with_states(std::string_view nodes) {
  return "program test batch 4 microbatch 2\n"
         "state w : f32[4] parameter trainable\n"
         "state g : f32[4] gradient\n"
         "state big : f32[8] statistic\n"
         "section micro\n" +
         std::string(nodes);
}

}  // namespace snug::testing
