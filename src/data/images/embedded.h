// A small data set inside the program: no download, no file.
#pragma once

#include <memory>

#include "data/dataset.h"

namespace snug::data {

// 1797 handwritten digits (see embedded/NOTICE.md): 8x8 pixels of 17 gray levels, shown as 32x32x3, interpolated linearly. 1500
// train, 297 test.
std::unique_ptr<Dataset> open_embedded();

}  // namespace snug::data
