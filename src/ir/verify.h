// The rules every program keeps, checked after every pass.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ir/program.h"

namespace snug {

// The first broken rule, with the offending node printed; nothing when the program is sound:
//   - every value is made once, before it is read, and by the op that its type follows from;
//   - a state's versions are made in order, and an old version is never read after a newer one was written;
//   - a node that reads a state and writes its next version has promised to work in place;
//   - bytes are shared only with an input of the same node, by promise, in the same layout, when nothing reads that input's bytes
//     later; two outputs of a node never lie in the same bytes;
//   - a view's bytes are never written while another value in them is still read.
std::optional<std::string> find_defect(const Program& program);

// InternalError naming `when` ("after pass x") if there is a defect.
void verify(const Program& program, std::string_view when);

}  // namespace snug
