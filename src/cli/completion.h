// Completion of the command in a shell, made from the same flags as --help.
#pragma once

#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace snug::cli {

// A script for bash or zsh, to be sourced or installed; UserError on another shell.
std::string completion(const CLI::App& root, std::string_view shell);

}  // namespace snug::cli
