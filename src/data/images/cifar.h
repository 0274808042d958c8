// CIFAR-10's binary batches: files of records, each one byte of label and 3072 of pixels (the red 32x32 plane, green, blue).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace snug::data {

inline constexpr std::int64_t kCifarSide = 32;
inline constexpr std::int64_t kCifarPlane = kCifarSide * kCifarSide;
inline constexpr std::int64_t kCifarRecordBytes = 1 + 3 * kCifarPlane;

// Does the folder hold a data_batch_N.bin or a test_batch.bin?
bool is_cifar_folder(const std::filesystem::path& folder);

// The folder's data_batch_N.bin (at least one; in order of N) to train on, test_batch.bin to test with, and the names of the
// classes in batches.meta.txt, one per line; without that file there are ten, named by their numbers. `name` is the data set's
// name.
std::unique_ptr<Dataset> open_cifar(const std::filesystem::path& folder, const std::string& name);

// Reads every batch of such a folder (see check_dataset).
CheckedFiles check_cifar(const std::filesystem::path& folder, const BadFileCallback& use);

}  // namespace snug::data
