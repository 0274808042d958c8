// What --help prints: purpose, usage, flags, examples, models.
#pragma once

namespace CLI {
class App;
}

namespace snug::cli {

void set_help(CLI::App& app);

}  // namespace snug::cli
