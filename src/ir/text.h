// The text form of programs: what --dump-after prints and pass tests compare. Printing, parsing and printing again is the
// identity.
//
//   program small-cnn batch 100 microbatch 50
//   state conv1.weight : f32[16x3x3x3]/channels_last parameter trainable
//   section micro
//     %conv1 = conv2d(%images, conv1.weight@0) {groups=1, ...} : f32[50x16x32x32]/channels_last activation ; forward conv1
//     %relu1 = relu(%conv1) : f32[50x16x32x32]/channels_last activation in %conv1 using reference_relu ; forward relu1
//
// `%name` is a transient value, `name@2` the third version of a state. `in %x` says whose bytes an output takes, `using` the
// kernel, `workspace` its scratch; `in_evaluation %x for %y` at the end of a section `forward` is one of its substitutes.
// `section micro of 7` runs on 7 examples and reads `images@0 as u8[7x3x32x32]/channels_last`, the first of those staged. The
// phase and the layer follow the semicolon. States called `scalars`, `metrics`, `gradient_norm`, `updates` and `scores` are those
// of the program's fields. `optimizer momentum of w` says what a state is for, and whose.
#pragma once

#include <string>
#include <string_view>

#include "ir/op.h"
#include "ir/program.h"

namespace snug {

std::string print(const Program& program);
std::string print(const Section& section);
std::string print(const Section& section, const Node& node);

// A section's kind by its name, or by the one in older texts: "rewire" for `periodic`. UserError
// when it is not a kind.
SectionKind parse_section_kind(std::string_view name);

// UserError naming the line when the text is not a program. The result is well-formed but not yet verified.
Program parse_program(std::string_view text, OpLookup find_op);

}  // namespace snug
