// Any bytes as a folder of CIFAR-10 batches, and as a mirror's list of labels: read, or refused with a UserError; never anything
// else. The input: a byte for the length of batches.meta.txt (0: no such file), one that says how the rest is shared between the
// batches, the meta file, and the rest, of which whole records are kept unless the second byte is odd.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/file.h"
#include "data/images/cifar.h"
#include "data/images/cifar_mirror.h"
#include <snug/error.h>

namespace {

using namespace snug::data;
namespace fs = std::filesystem;
using Bytes = std::span<const std::byte>;

// On a file system in memory where there is one.
const fs::path& work_folder() {
  static const fs::path folder = [] {
    std::string name = (fs::exists("/dev/shm") ? "/dev/shm" : fs::temp_directory_path().string()) + "/snug-fuzz-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    std::atexit([] { fs::remove_all(work_folder()); });
    return fs::path(name);
  }();
  return folder;
}

void write(const char* name, Bytes bytes) { write_all(create_file(work_folder() / name), name, bytes); }

Bytes take(Bytes& bytes, std::size_t count) {
  const Bytes taken = bytes.first(std::min(count, bytes.size()));
  bytes = bytes.subspan(taken.size());
  return taken;
}

// The input repeated up to a whole number of records: bytes of labels, not of pixels, are what matters.
std::vector<std::byte> as_records(Bytes bytes, bool whole) {
  std::vector<std::byte> result(bytes.begin(), bytes.end());
  if (!whole) return result;
  result.clear();
  for (const std::byte label : bytes.first(std::min<std::size_t>(bytes.size(), 8))) {
    result.push_back(label);
    result.insert(result.end(), static_cast<std::size_t>(kCifarRecordBytes - 1), label);
  }
  return result;
}

void read_folder(Bytes input) {
  if (input.size() < 2) return;
  const auto meta_bytes = std::to_integer<std::size_t>(input[0]);
  const auto how = std::to_integer<unsigned>(input[1]);
  input = input.subspan(2);
  fs::remove(work_folder() / "batches.meta.txt");
  if (meta_bytes > 0) write("batches.meta.txt", take(input, meta_bytes));
  const Bytes train = take(input, input.size() * (how / 2) / 128);
  write("data_batch_1.bin", as_records(train, how % 2 == 0));
  write("test_batch.bin", as_records(input, how % 2 == 0));
  const auto dataset = open_cifar(work_folder(), "fuzz");
  std::vector<std::byte> pixels(dataset->description().image_bytes());
  for (const Split split : {Split::train, Split::test}) {
    for (std::int64_t i = 0; i < dataset->description().examples(split); ++i) {
      std::int32_t label = -1;
      const std::array<std::span<std::byte>, 2> inputs{pixels, std::as_writable_bytes(std::span(&label, 1))};
      dataset->read(split, i, inputs);
      if (label < 0 || label >= dataset->description().classes) std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
  try {
    read_folder(std::as_bytes(std::span(bytes, count)));
  } catch (const snug::UserError&) {
  }
  try {
    for (const std::uint8_t label : parse_labels({reinterpret_cast<const char*>(bytes), count}, "labels")) {
      if (label > 9) std::abort();
    }
  } catch (const snug::UserError&) {
  }
  return 0;
}
