// Folders of PNG and JPEG files, one folder per class.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "data/dataset.h"

namespace snug::data {

inline constexpr std::int64_t kMostImageSize = 4096;

// PATH/train/CLASS/* and PATH/test/CLASS/*, or PATH/CLASS/* with a tenth set aside for testing, of each class as nearly as
// possible: those whose names' hashes are the smallest of their class, so that adding files moves few from one side to the other.
// Each class keeps one for training. Classes are numbered in the order of their names. Files are those that end in .png, .jpg or
// .jpeg, in either case; others are left out, which Description::notes says; names that begin with a dot and deeper folders are
// skipped. Images are resized to `side` x `side` without keeping their proportions.
//
// The list of files lies in unnamed temporary files. Resident are the names of the classes, a bounded run while sorting, and,
// during a read, a few rows of the image or, for interlaced and progressive ones, up to ImageLimits::buffered_bytes.
//
// Where bad images are left out, every image is decoded once before, on all cores, and the data set is what it would be were the
// bad ones not there; Description::notes says how many they are.
std::unique_ptr<Dataset> open_image_folder(const std::filesystem::path& folder, const std::string& name, std::int64_t side,
                                           BadImages bad_images = BadImages::refused);

// Decodes every image of such a folder (see check_dataset). UserError when it is not laid out as one.
CheckedFiles check_image_folder(const std::filesystem::path& folder, const BadFileCallback& use);

}  // namespace snug::data
