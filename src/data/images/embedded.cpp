#include "data/images/embedded.h"

#include <iterator>
#include <string>

#include "base/error.h"
#include "data/images/resize.h"
#include "data/images/statistics.h"

namespace snug::data {

namespace {

// An image is its label as a digit, then its pixels from 'a' (0) to 'q' (16).
constexpr char kDigits[][66] = {
#include "data/embedded/digits.inc"
};

constexpr std::int64_t kSourceSide = 8;
constexpr std::int64_t kSide = 32;
constexpr std::int64_t kTrain = 1500;
constexpr std::int64_t kTest = 297;
static_assert(std::size(kDigits) == kTrain + kTest);

class Embedded : public ImageDataset {
 public:
  Embedded() {
    description_.name = "embedded";
    description_.channels = 3;
    description_.height = kSide;
    description_.width = kSide;
    description_.classes = 10;
    for (int digit = 0; digit < 10; ++digit) description_.class_names.push_back(std::to_string(digit));
    description_.train_examples = kTrain;
    description_.test_examples = kTest;
    description_.fingerprint = fingerprint_of(description_.name);  // the images are part of the program
    measure_channels(*this, kTrain, description_);
  }

  const Description& description() const override { return description_; }

  std::int32_t read_image(Split split, std::int64_t index, std::span<std::byte> pixels) const override {
    SNUG_CHECK(index >= 0 && index < description_.examples(split) && pixels.size() == description_.image_bytes(),
               "example {} into {} bytes", index, pixels.size());
    const char* image = kDigits[split == Split::train ? index : kTrain + index];
    const char* source = image + 1;
    for (std::int64_t y = 0; y < kSide; ++y) {
      const Between rows = between(y, kSourceSide, kSide);
      for (std::int64_t x = 0; x < kSide; ++x) {
        const Between columns = between(x, kSourceSide, kSide);
        const auto along = [&](std::int64_t row) {
          const char* line = source + row * kSourceSide;
          return columns.first_weight * static_cast<std::uint32_t>(line[columns.first] - 'a') +
                 columns.second_weight * static_cast<std::uint32_t>(line[columns.second] - 'a');
        };
        const std::uint32_t sum = rows.first_weight * along(rows.first) + rows.second_weight * along(rows.second);
        // Gray level 16 with full weight along both axes is white.
        constexpr std::uint32_t kWhite = 16 * (2 * kSide) * (2 * kSide);
        const auto value = static_cast<std::byte>((sum * 255 + kWhite / 2) / kWhite);
        std::byte* pixel = pixels.data() + (y * kSide + x) * 3;
        pixel[0] = pixel[1] = pixel[2] = value;
      }
    }
    return image[0] - '0';
  }

 private:
  Description description_;
};

}  // namespace

std::unique_ptr<Dataset> open_embedded() { return std::make_unique<Embedded>(); }

}  // namespace snug::data
