// In-place reuse: an output takes the bytes of an input that dies at its node, where the op promises to read each element before
// it writes it; a view always lies in its input's bytes. Exact. The last pass before placement.
//
//   %y = relu(%x) : f32[8]    ->    %y = relu(%x) : f32[8] in %x
//
// when nothing later reads %x or another value in its bytes.
#pragma once

#include "passes/pass.h"

namespace snug {

Program share_bytes(Program program, const PassContext& context);

}  // namespace snug
