// Of a program of steps for examples of one row, the section `decode`: it takes one row of each example after the other, as when
// a text is written token by token, and keeps the scores of each. Every op that looks beyond its row is replaced by the op for
// steps that it names (OpDef::in_steps), whose states hold what it needs of the rows before; the position of a row is an input.
//
//   section eval                                                    section decode
//     %x = embedding(tokens@0, wte@0)                                 %x = embedding(tokens@0, wte@0)
//     %y = add_positions(%x, wpe@0)                       ->          %y = add_positions_at(%x, wpe@0, positions@0)
//     %z, %sums = attention(%y, scalars@0)                            %z, keys@1, values@1 = attention_step(%y, keys@0, ...)
//     metrics@1 = linear_cross_entropy(%z, wte@0, labels@0)           scores@1 = linear(%z, wte@0)
//
// Exact up to the order of sums: row for row the scores that the whole example has. Ops without `in_steps` must treat rows of an
// example alike, as all layers of the builder do that take sequences. Runs before the memory methods.
#pragma once

#include <cstdint>

#include "ir/program.h"

namespace snug {

// `context`: rows that an example has at most. UserError naming the layer that cannot go in steps.
Program decode_only(Program program, std::int64_t context);

}  // namespace snug
