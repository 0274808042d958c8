// Examples for training and testing. A data set lies in files and is read example by example: resident memory does not grow with
// the number of examples.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <snug/error.h>

namespace snug::data {

enum class Split { train, test };

// A part of each example, by the name of the model's input.
struct Input {
  enum class Content : std::uint8_t {
    pixels,   // bytes in the order H,W,C
    classes,  // class numbers, i32
    tokens,   // i32; as labels also kIgnoredLabel
    numbers   // in the type that the model computes with
  };
  std::string name;
  std::size_t example_bytes = 0;
  Content content = Content::pixels;

  friend bool operator==(const Input&, const Input&) = default;
};

// Bytes of an input, one example after the other.
struct NamedBytes {
  std::string_view name;
  std::span<const std::byte> bytes;
};

// The label of a row that counts nothing in the loss, as in PyTorch.
inline constexpr std::int32_t kIgnoredLabel = -100;

enum class Kind : std::uint8_t { images, text };

// What is known of a text beside its examples. Tokens are numbers from 0 to vocabulary - 1.
struct TextFacts {
  std::string tokenizer;  // as it was given: "bytes", or a path
  std::int64_t vocabulary = 0;
  std::uint64_t tokenizer_fingerprint = 0;
  std::int64_t length = 0;  // tokens of an example
  std::int64_t train_tokens = 0;
  std::int64_t test_tokens = 0;
  std::int64_t train_bytes = 0;
  std::int64_t test_bytes = 0;
  std::uint64_t sample = 0;  // a checksum of an even sample of the bytes

  std::int64_t tokens(Split split) const { return split == Split::train ? train_tokens : test_tokens; }
  std::int64_t bytes(Split split) const { return split == Split::train ? train_bytes : test_bytes; }

  friend bool operator==(const TextFacts&, const TextFacts&) = default;
};

struct Description {
  std::string name;  // "embedded", "cifar10", or the path as it was given
  Kind kind = Kind::images;
  // Of images; 0 and empty for texts, as are `mean` and `std`.
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t classes = 0;
  std::vector<std::string> class_names;  // `classes` of them
  std::int64_t train_examples = 0;       // at least one of each
  std::int64_t test_examples = 0;
  // Per channel, in units of 0..255, over training examples: all of them, or an even sample of a large set. A standard deviation
  // is at least 1, so that it can be divided by.
  std::vector<double> mean;
  std::vector<double> std;
  // The sum of fingerprint_of() over all files, so that it tells which file was removed. Does not depend on their contents, but
  // on the sizes of texts.
  std::uint64_t fingerprint = 0;
  TextFacts text;  // of texts

  std::vector<std::string> notes;  // for the user: what was left out of the data, one sentence each

  std::int64_t examples(Split split) const { return split == Split::train ? train_examples : test_examples; }
  std::size_t image_bytes() const { return static_cast<std::size_t>(channels * height * width); }

  friend bool operator==(const Description&, const Description&) = default;
};

// What one file adds to a data set's fingerprint; `name` is its path within the data set.
std::uint64_t fingerprint_of(std::string_view name);

// An example that cannot be read. Removing its file reduces the data set's fingerprint by this one's.
class UnreadableExample : public UserError {
 public:
  UnreadableExample(const std::string& message, std::uint64_t fingerprint) : UserError(message), fingerprint_(fingerprint) {}
  std::uint64_t fingerprint() const { return fingerprint_; }

 private:
  std::uint64_t fingerprint_;
};

class Dataset {
 public:
  Dataset() = default;
  virtual ~Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  virtual const Description& description() const = 0;
  // The parts of an example.
  virtual std::vector<Input> inputs() const = 0;
  // Fills one span for each of inputs(), in their order, with one example. May be called from several threads at
  // once. UserError naming the file when it is short, corrupt or gone; an UnreadableExample where the data set would be complete
  // without that file.
  virtual void read(Split split, std::int64_t index, std::span<const std::span<std::byte>> inputs) const = 0;
  // The example as it is in this epoch of training: windows of a text begin elsewhere in every epoch. read() is epoch 0.
  virtual void read_in_epoch(std::uint64_t /*epoch*/, Split split, std::int64_t index,
                             std::span<const std::span<std::byte>> inputs) const {
    read(split, index, inputs);
  }
};

// Images, each with a label.
class ImageDataset : public Dataset {
 public:
  // The inputs "images" and "labels".
  std::vector<Input> inputs() const final;
  // Fills `pixels`, which has image_bytes(); returns the label, 0 <= label < classes.
  virtual std::int32_t read_image(Split split, std::int64_t index, std::span<std::byte> pixels) const = 0;
  void read(Split split, std::int64_t index, std::span<const std::span<std::byte>> inputs) const final;
};

// What becomes of image files that cannot be read: a UserError when one is reached, or no part of the data set.
enum class BadImages : std::uint8_t { refused, left_out };

inline constexpr std::int64_t kDefaultLength = 256;
inline constexpr std::int64_t kMostLength = 1'048'576;

struct TextOptions {
  std::string tokenizer = "bytes";  // as open_tokenizer() takes it
  std::int64_t length = 0;          // tokens of an example; 0: kDefaultLength
};

struct OpenOptions {
  std::int64_t image_size = 0;           // image folders: every image is resized to a square of this side
  std::int64_t default_image_size = 32;  // ... and of this one where `image_size` is 0
  BadImages bad_images = BadImages::refused;
  TextOptions text;
};

// The sets that are known by name.
inline constexpr std::array<std::string_view, 2> kNamedSets{"embedded", "cifar10"};

// `spec` is "embedded", "cifar10" (in cifar10_folder()), or the path of a folder: of CIFAR-10 binary batches, or of images as
// PATH/train/CLASS/* and PATH/test/CLASS/*, or as PATH/CLASS/* (then a tenth, chosen by hashes of the names, is set aside for
// testing). Texts are a file or a folder of .txt files without images (text/text_dataset.h). UserError when an image size is
// given for a data set whose images have another, fixed size, or for a text.
std::unique_ptr<Dataset> open_dataset(const std::string& spec, const OpenOptions& options);

// Reads every file of a data set and hands out those that are not as they should be, with the reason as a sentence: images that
// cannot be decoded, batches of CIFAR-10 that are cut short or have labels of no class; those of "cifar10" itself by their
// checksums. In the order of their paths within a folder. UserError when it is no data set at all.
struct CheckedFiles {
  std::int64_t files = 0;
  std::int64_t bad = 0;
};
using BadFileCallback = std::function<void(const std::filesystem::path& file, const std::string& reason)>;
CheckedFiles check_dataset(const std::string& spec, const BadFileCallback& use);

}  // namespace snug::data
