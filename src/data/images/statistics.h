// A data set's statistics for normalization.
#pragma once

#include <cstdint>

#include "data/dataset.h"

namespace snug::data {

// Fills description.mean and description.std from training examples: all of them, or `most` spread evenly when there are more.
// `dataset` must be ready to be read. Sums are exact, so the result does not depend on the order of reading.
void measure_channels(const ImageDataset& dataset, std::int64_t most, Description& description);

}  // namespace snug::data
