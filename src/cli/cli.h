// The command, without its main().
#pragma once

#include <string>
#include <vector>

namespace snug::cli {

// Runs the command with the given arguments (the program's name not among them), writing to standard output and standard error.
// Returns the exit code; nothing is thrown.
int run(const std::vector<std::string>& arguments);

}  // namespace snug::cli
