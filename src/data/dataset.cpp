#include "data/dataset.h"

#include <cstring>
#include <filesystem>
#include <system_error>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/nearest.h"
#include "base/philox.h"
#include "data/images/cifar.h"
#include "data/images/embedded.h"
#include "data/images/get_cifar10.h"
#include "data/images/image_folder.h"
#include "data/text/text_dataset.h"
#include "data/text/text_source.h"

namespace snug::data {

namespace {

// Both built-in sets are 32x32.
void check_fixed_size(const std::string& spec, std::int64_t side, const OpenOptions& options) {
  if (options.image_size != 0 && options.image_size != side) {
    throw_user_error("the images of {} are {}x{} and cannot be resized to {}x{}", spec, side, side, options.image_size,
                     options.image_size);
  }
}

std::filesystem::path downloaded_cifar10() {
  std::filesystem::path folder = cifar10_folder();
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error))
    throw_user_error("cifar10 is not at {}: run `snug data get cifar10`", folder.string());
  return folder;
}

// UserError unless it is a folder.
std::filesystem::path data_folder(const std::string& spec) {
  std::filesystem::path folder(spec);
  std::error_code error;
  const auto status = std::filesystem::status(folder, error);
  if (!std::filesystem::exists(status)) {
    const std::string reason =
        error && error != std::errc::no_such_file_or_directory ? error.message() : "there is no such file or folder";
    throw_user_error("data '{}' cannot be read: {}; give {} or the path of a folder or a text{}", spec, reason,
                     fmt::join(kNamedSets, ", "), did_you_mean(spec, kNamedSets));
  }
  if (!std::filesystem::is_directory(status)) {
    throw_user_error(
        "data '{}' is neither a folder nor a file: give {}, a text, or a folder of texts, images or CIFAR-10 batches", spec,
        fmt::join(kNamedSets, ", "));
  }
  return folder;
}

std::unique_ptr<Dataset> open_folder(const std::string& spec, const OpenOptions& options) {
  const std::filesystem::path folder = data_folder(spec);
  if (is_cifar_folder(folder)) {
    check_fixed_size(spec, kCifarSide, options);
    return open_cifar(folder, spec);
  }
  return open_image_folder(folder, spec, options.image_size == 0 ? options.default_image_size : options.image_size,
                           options.bad_images);
}

}  // namespace

std::vector<Input> ImageDataset::inputs() const {
  return {{.name = "images", .example_bytes = description().image_bytes(), .content = Input::Content::pixels},
          {.name = "labels", .example_bytes = sizeof(std::int32_t), .content = Input::Content::classes}};
}

void ImageDataset::read(Split split, std::int64_t index, std::span<const std::span<std::byte>> inputs) const {
  SNUG_CHECK(inputs.size() == 2 && inputs[1].size() == sizeof(std::int32_t), "{} inputs of an image", inputs.size());
  const std::int32_t label = read_image(split, index, inputs[0]);
  std::memcpy(inputs[1].data(), &label, sizeof label);
}

std::uint64_t fingerprint_of(std::string_view name) {
  // FNV-1a, then mixed: sums of similar names must not cancel out.
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  const PhiloxBlock mixed = philox(hash, 0, 0);
  return mixed.word[0] | (std::uint64_t{mixed.word[1]} << 32U);
}

std::unique_ptr<Dataset> open_dataset(const std::string& spec, const OpenOptions& options) {
  if (options.image_size < 0 || options.image_size > kMostImageSize) {
    throw_user_error("images cannot be resized to {0}x{0}: give a side of 1 to {1} pixels", options.image_size, kMostImageSize);
  }
  if (spec == "embedded") {
    check_fixed_size(spec, 32, options);
    return open_embedded();
  }
  if (spec == "cifar10") {
    check_fixed_size(spec, kCifarSide, options);
    return open_cifar(downloaded_cifar10(), spec);
  }
  if (is_text_data(spec)) {
    if (options.image_size != 0) {
      throw_user_error("{} is a text and has no images that could be resized to {}x{}", spec, options.image_size,
                       options.image_size);
    }
    return open_text(spec, options.text);
  }
  return open_folder(spec, options);
}

CheckedFiles check_dataset(const std::string& spec, const BadFileCallback& use) {
  if (spec == "embedded") return {};  // no file
  if (spec == "cifar10") return check_cifar10(downloaded_cifar10(), use);
  if (is_text_data(spec)) return check_text(spec, use).files;
  const std::filesystem::path folder = data_folder(spec);
  return is_cifar_folder(folder) ? check_cifar(folder, use) : check_image_folder(folder, use);
}

}  // namespace snug::data
