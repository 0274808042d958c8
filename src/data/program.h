// Runs another program and waits for it.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace snug::data {

// words[0] is found on PATH; no shell reads the words. Standard input and output are /dev/null. Returns "" when the program exits
// with 0, and otherwise why not, with the last line it wrote to standard error. `while_waiting` is called a few times a second;
// when it throws, the program is killed. UserError when the user interrupts the program.
std::string run_program(const std::vector<std::string>& words, const std::function<void()>& while_waiting);

}  // namespace snug::data
