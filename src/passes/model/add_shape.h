// Lets a model run in another shape too: its section `forward` for fewer examples, or shorter ones, beside the one it has. States
// and the arena are shared; the transient region is as large as the largest shape needs.
//
//   state images : u8[10x3x32x32]                          state images : u8[10x3x32x32]
//   section forward                                   ->   section forward
//     %x = image_input(images@0, ...)                        %x = image_input(images@0, ...)
//                                                          section forward of 7
//                                                            %x = image_input(images@0 as u8[7x3x32x32], ...)
#pragma once

#include "ir/program.h"

namespace snug {

// `other`: the same model, built for fewer examples. UserError when it is another model: all states but the inputs must be the
// same, and of the inputs there may be less.
Program add_shape(Program model, Program other);

}  // namespace snug
