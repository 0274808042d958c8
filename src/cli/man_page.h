// The manual page snug(1), made from the same flags as --help.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace snug::cli {

// In roff, for man.
std::string man_page(const CLI::App& root);

}  // namespace snug::cli
