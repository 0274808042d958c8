// Lets a model run in another shape too: adds its section `forward` for fewer examples, or shorter ones. States and the arena are
// shared; the transient region is as large as the largest shape needs.
//
//   state images : u8[10x3x32x32]                          state images : u8[10x3x32x32]
//   section forward                                   ->   section forward
//     %x = image_input(images@0, ...)                        %x = image_input(images@0, ...)
//                                                          section forward of 7
//                                                            %x = image_input(images@0 as u8[7x3x32x32], ...)
#pragma once

#include "ir/program.h"

namespace snug {

// `other`: the same model, built for fewer examples. UserError when it is another model: all states must be the same, except that
// inputs may be smaller.
Program add_shape(Program model, Program other);

}  // namespace snug
