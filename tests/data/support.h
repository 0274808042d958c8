// Files to read: temporary folders, CIFAR batches and pictures made on the spot.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "data/images/cifar.h"
#include "data/stream.h"
#include "support/messages.h"
#include "support/temporary_folder.h"
#include <snug/error.h>

namespace snug::data {

namespace fs = std::filesystem;
using ByteString = std::vector<std::byte>;

using TestFolder = support::TemporaryFolder;

// Sets a variable of the environment (or removes it, given nullptr) for as long as it lives.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) {
      had_ = true;
      old_ = old;
    }
    set(value);
  }
  ~ScopedVariable() { set(had_ ? old_.c_str() : nullptr); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  void set(const char* value) const {
    if (value == nullptr) {
      ::unsetenv(name_);
    } else {
      ::setenv(name_, value, 1);
    }
  }
  const char* name_;
  bool had_ = false;
  std::string old_;
};

// Fills `pixels` and returns the label, through the inputs that every data set has.
inline std::int32_t read_image(const Dataset& dataset, Split split, std::int64_t index, std::span<std::byte> pixels) {
  std::int32_t label = -1;
  const std::array<std::span<std::byte>, 2> inputs{pixels, std::as_writable_bytes(std::span(&label, 1))};
  dataset.read(split, index, inputs);
  return label;
}

// The labels of a batch, in whichever input they are.
inline std::vector<std::int32_t> labels_of(const Batch& batch) {
  std::vector<std::int32_t> labels(batch.examples);
  for (const NamedBytes& input : batch.inputs) {
    if (input.name == "labels" && input.bytes.size() == labels.size() * sizeof(std::int32_t))
      std::memcpy(labels.data(), input.bytes.data(), input.bytes.size());
  }
  return labels;
}

// For root every file is readable: tests of files that are not become someone else.
class Unprivileged {
 public:
  Unprivileged() : was_root_(::geteuid() == 0) {
    if (was_root_ && ::seteuid(65534) != 0) throw std::runtime_error("seteuid failed");
  }
  ~Unprivileged() {
    if (was_root_ && ::seteuid(0) != 0) std::abort();
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;

 private:
  bool was_root_;
};

inline void write_file(const fs::path& path, const ByteString& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

inline void write_text(const fs::path& path, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  write_file(path, ByteString(bytes.begin(), bytes.end()));
}

inline std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// What the action's UserError says; fails the test when there is none, or when it is not one sentence.
inline std::string user_error_of(const std::function<void()>& action) {
  std::string text = support::message_of<UserError>(action);
  EXPECT_NE(text, "nothing was thrown");
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  return text;
}

// The value of record `index` of a made-up CIFAR batch at a channel and pixel.
inline std::byte cifar_value(std::size_t index, std::size_t channel, std::size_t pixel) {
  return static_cast<std::byte>(index * 7 + channel * 50 + pixel % 97);
}

// Records first, first + 1, ... with labels index % 10.
inline ByteString cifar_records(std::size_t first, std::size_t count) {
  ByteString bytes;
  bytes.reserve(count * kCifarRecordBytes);
  for (std::size_t index = first; index < first + count; ++index) {
    bytes.push_back(static_cast<std::byte>(index % 10));
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t p = 0; p < kCifarPlane; ++p) bytes.push_back(cifar_value(index, c, p));
    }
  }
  return bytes;
}

inline void write_cifar(const fs::path& folder, std::size_t train, std::size_t test) {
  write_file(folder / "data_batch_1.bin", cifar_records(0, train));
  write_file(folder / "test_batch.bin", cifar_records(train, test));
}

}  // namespace snug::data
