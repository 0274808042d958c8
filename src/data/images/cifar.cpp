#include "data/images/cifar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/counted.h"
#include "base/error.h"
#include "data/file.h"
#include "data/images/statistics.h"

namespace snug::data {

namespace {

// The whole training set of CIFAR-10.
constexpr std::int64_t kMeasured = 50'000;
constexpr std::int64_t kMetaLimit = 65'536;  // bytes of batches.meta.txt
constexpr std::size_t kMostClasses = 256;    // a label is a byte

// The N of data_batch_N.bin.
std::optional<std::uint64_t> batch_number(std::string_view name) {
  constexpr std::string_view kPrefix = "data_batch_";
  constexpr std::string_view kSuffix = ".bin";
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix) || name.size() <= kPrefix.size() + kSuffix.size())
    return std::nullopt;
  name = name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc{} || end != name.data() + name.size()) return std::nullopt;
  return number;
}

struct Numbered {
  std::uint64_t number = 0;
  std::filesystem::path path;
};

std::vector<Numbered> training_files(const std::filesystem::path& folder) {
  std::vector<Numbered> files;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (const auto number = batch_number(entry->path().filename().native())) files.push_back({*number, entry->path()});
  }
  if (error) throw_user_error("folder {} cannot be read: {}", folder.string(), error.message());
  // data_batch_1.bin and data_batch_01.bin have the same number: then their names decide.
  std::ranges::sort(
      files, [](const Numbered& a, const Numbered& b) { return a.number != b.number ? a.number < b.number : a.path < b.path; });
  return files;
}

std::vector<std::string> read_class_names(const std::filesystem::path& path) {
  std::error_code error;
  std::vector<std::string> names;
  if (!std::filesystem::exists(path, error) && !error) {
    for (int label = 0; label < 10; ++label) names.push_back(std::to_string(label));
    return names;
  }
  const File file = open_regular_file(path);
  const std::int64_t size = file_size(file, path);
  if (size > kMetaLimit)
    throw_user_error("{} has {} bytes: it should have one class name a line and no more", path.string(), size);
  std::string text(static_cast<std::size_t>(size), '\0');
  read_at(file, path, 0, std::as_writable_bytes(std::span(text)));
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t length = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, length);
    rest.remove_prefix(std::min(length + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) names.emplace_back(line);
  }
  if (names.empty() || names.size() > kMostClasses) {
    throw_user_error("{} names {}: it should name 1 to {}, one per line", path.string(),
                     counted(names.size(), "class", "classes"), kMostClasses);
  }
  return names;
}

struct BatchFile {
  std::filesystem::path path;
  File file;
  std::int64_t records = 0;
  std::int64_t first = 0;  // index of its first record in the split
};

BatchFile open_batch(const std::filesystem::path& path) {
  BatchFile batch{.path = path, .file = open_regular_file(path)};
  const std::int64_t size = file_size(batch.file, path);
  if (size == 0) throw_user_error("{} is empty", path.string());
  if (size % kCifarRecordBytes != 0) {
    throw_user_error("{} is cut short or is not CIFAR-10: its {} bytes are not a whole number of records of {}", path.string(),
                     size, kCifarRecordBytes);
  }
  batch.records = size / kCifarRecordBytes;
  return batch;
}

void check_label(const BatchFile& batch, std::int64_t record, std::int32_t label, std::int64_t classes) {
  if (label < classes) return;
  throw_user_error("{} is not CIFAR-10: record {} has label {}, but there are {} classes", batch.path.string(), record, label,
                   classes);
}

void check_batch(const std::filesystem::path& path, std::int64_t classes) {
  const BatchFile batch = open_batch(path);
  std::array<std::byte, kCifarRecordBytes> bytes;
  for (std::int64_t record = 0; record < batch.records; ++record) {
    read_at(batch.file, batch.path, record * kCifarRecordBytes, bytes);
    check_label(batch, record, std::to_integer<std::int32_t>(bytes[0]), classes);
  }
}

class Cifar : public ImageDataset {
 public:
  Cifar(const std::filesystem::path& folder, const std::string& name) {
    for (const Numbered& file : training_files(folder)) train_.push_back(open_batch(file.path));
    if (train_.empty()) throw_user_error("{} has no data_batch_1.bin to train on", folder.string());
    test_.push_back(open_batch(folder / "test_batch.bin"));
    description_.name = name;
    description_.channels = 3;
    description_.height = kCifarSide;
    description_.width = kCifarSide;
    description_.class_names = read_class_names(folder / "batches.meta.txt");
    description_.classes = static_cast<std::int64_t>(description_.class_names.size());
    description_.train_examples = place_in_order(train_);
    description_.test_examples = place_in_order(test_);
    for (const std::vector<BatchFile>* files : {&train_, &test_}) {
      for (const BatchFile& file : *files)
        description_.fingerprint += fingerprint_of(fmt::format("{} {}", file.path.filename().string(), file.records));
    }
    measure_channels(*this, kMeasured, description_);
  }

  const Description& description() const override { return description_; }

  std::int32_t read_image(Split split, std::int64_t index, std::span<std::byte> pixels) const override {
    SNUG_CHECK(index >= 0 && index < description_.examples(split) && pixels.size() == description_.image_bytes(),
               "example {} into {} bytes", index, pixels.size());
    const std::vector<BatchFile>& files = split == Split::train ? train_ : test_;
    const auto after = std::ranges::upper_bound(files, index, {}, &BatchFile::first);
    const BatchFile& batch = *(after - 1);
    const std::int64_t record = index - batch.first;
    std::array<std::byte, kCifarRecordBytes> bytes;
    read_at(batch.file, batch.path, record * kCifarRecordBytes, bytes);
    const auto label = std::to_integer<std::int32_t>(bytes[0]);
    check_label(batch, record, label, description_.classes);
    const std::byte* red = bytes.data() + 1;
    for (std::size_t i = 0; i < kCifarPlane; ++i) {
      pixels[3 * i] = red[i];
      pixels[3 * i + 1] = red[i + kCifarPlane];
      pixels[3 * i + 2] = red[i + 2 * kCifarPlane];
    }
    return label;
  }

 private:
  static std::int64_t place_in_order(std::vector<BatchFile>& files) {
    std::int64_t records = 0;
    for (BatchFile& file : files) {
      file.first = records;
      records += file.records;
    }
    return records;
  }

  Description description_;
  std::vector<BatchFile> train_;
  std::vector<BatchFile> test_;
};

}  // namespace

bool is_cifar_folder(const std::filesystem::path& folder) {
  std::error_code error;
  return std::filesystem::exists(folder / "test_batch.bin", error) || !training_files(folder).empty();
}

std::unique_ptr<Dataset> open_cifar(const std::filesystem::path& folder, const std::string& name) {
  return std::make_unique<Cifar>(folder, name);
}

CheckedFiles check_cifar(const std::filesystem::path& folder, const BadFileCallback& use) {
  const auto classes = static_cast<std::int64_t>(read_class_names(folder / "batches.meta.txt").size());
  std::vector<Numbered> files = training_files(folder);
  files.push_back({.number = 0, .path = folder / "test_batch.bin"});
  CheckedFiles checked;
  for (const Numbered& file : files) {
    ++checked.files;
    try {
      check_batch(file.path, classes);
    } catch (const UserError& error) {
      ++checked.bad;
      use(file.path, error.what());
    }
  }
  return checked;
}

}  // namespace snug::data
