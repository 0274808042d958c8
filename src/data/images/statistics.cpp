#include "data/images/statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace snug::data {

void measure_channels(const ImageDataset& dataset, std::int64_t most, Description& description) {
  const auto channels = static_cast<std::size_t>(description.channels);
  const std::int64_t sampled = std::min(most, description.train_examples);
  std::vector<std::byte> pixels(description.image_bytes());
  std::vector<std::uint64_t> sum(channels);
  std::vector<std::uint64_t> sum_of_squares(channels);
  for (std::int64_t i = 0; i < sampled; ++i) {
    // i * n / sampled without overflow for any number of examples.
    const std::int64_t n = description.train_examples;
    dataset.read_image(Split::train, n / sampled * i + n % sampled * i / sampled, pixels);
    for (std::size_t at = 0; at < pixels.size(); at += channels) {
      for (std::size_t c = 0; c < channels; ++c) {
        const auto value = std::to_integer<std::uint32_t>(pixels[at + c]);
        sum[c] += value;
        sum_of_squares[c] += std::uint64_t{value} * value;
      }
    }
  }
  const double count = static_cast<double>(sampled) * static_cast<double>(description.height * description.width);
  description.mean.resize(channels);
  description.std.resize(channels);
  for (std::size_t c = 0; c < channels; ++c) {
    const double mean = static_cast<double>(sum[c]) / count;
    description.mean[c] = mean;
    description.std[c] = std::max(1.0, std::sqrt(std::max(0.0, static_cast<double>(sum_of_squares[c]) / count - mean * mean)));
  }
}

}  // namespace snug::data
