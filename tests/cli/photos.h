// A small folder of images to train on, and the command run in another working folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

#include "run_snug.h"
#include "support/plain_png.h"

namespace snug::cli {

// Two classes, reddish a and bluish b, of `count` images each for training, half as many for testing.
inline void make_photos(const std::filesystem::path& folder, int count = 8) {
  for (int i = 0; i < count; ++i) {
    for (const std::string split : {"train", "test"}) {
      if (split == "test" && i % 2 != 0) continue;
      const auto shade = static_cast<std::uint8_t>(20 * i);
      support::write_plain_png(folder / split / "a" / (std::to_string(i) + ".png"), 200, shade, 0);
      support::write_plain_png(folder / split / "b" / (std::to_string(i) + ".png"), 0, shade, 200);
    }
  }
}

// Runs the command in another working folder.
inline Ended run_in(const std::filesystem::path& folder, const std::vector<std::string>& arguments) {
  return run_snug(arguments, [&] {
    if (chdir(folder.c_str()) != 0) _exit(126);
  });
}

}  // namespace snug::cli
