// The bytes of a text, wherever they lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/file.h"
#include "data/file_index.h"

namespace snug::data {

// One text after the other; a text is a file's.
class TextSource {
 public:
  TextSource() = default;
  virtual ~TextSource() = default;
  TextSource(const TextSource&) = delete;
  TextSource& operator=(const TextSource&) = delete;

  virtual std::int64_t bytes() const = 0;
  // Fills `target` with the bytes from `offset` on, from any thread. UserError naming the file that has become shorter or is
  // gone.
  virtual void read(std::int64_t offset, std::span<std::byte> target) const = 0;
  // Where the text ends that has the byte at `offset`.
  virtual std::int64_t end_of_text(std::int64_t offset) const = 0;
};

// Texts in files, in the order in which they are added. Their list is on disk: nothing resident grows with it.
class TextFiles : public TextSource {
 public:
  explicit TextFiles(std::filesystem::path folder) : folder_(std::move(folder)), begins_(open_unnamed_file()) {}

  // `name` is relative to the folder. An empty file is left out.
  void add(const std::string& name, std::int64_t bytes);
  // After the last.
  void finish();

  std::int64_t bytes() const override { return bytes_; }
  void read(std::int64_t offset, std::span<std::byte> target) const override;
  std::int64_t end_of_text(std::int64_t offset) const override;

 private:
  // The number of the file that has this byte.
  std::int64_t file_of(std::int64_t offset) const;
  std::int64_t begin_of(std::int64_t number) const;

  std::filesystem::path folder_;
  FileIndex names_;
  File begins_;  // where each file begins in the whole, eight bytes each
  std::vector<std::int64_t> buffer_;
  std::int64_t bytes_ = 0;
  std::filesystem::path only_path_;  // the one file, kept open, where there is only one
  File only_file_;
};

// A part of a source.
struct TextPart {
  std::shared_ptr<const TextSource> source;
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t bytes() const { return end - begin; }
};

// Calls take(piece) for the bytes of the part, in pieces of up to kPieceBytes, and end_text(is_whole) after each text; the part
// may cut the last one off.
void read_texts(const TextPart& part, const std::function<void(std::string_view piece)>& take,
                const std::function<void(bool is_whole)>& end_text);

// What a data set's texts are: a part to train on and one to test on, which have no byte in common.
struct TextParts {
  TextPart train;
  TextPart test;
  std::uint64_t fingerprint = 0;  // of names and sizes, as in Description
  std::vector<std::string> notes;
};

// UserError where there is no text, or too little to set a tenth aside.
TextParts open_text_parts(const std::string& spec);

// Calls take(path, name) for each .txt file below the folder, also those in folders in it, in the order of the bytes of their
// paths relative to it (`name`). Names that begin with a dot are passed over. Returns how many other files there are.
std::int64_t for_each_text(const std::filesystem::path& folder,
                           const std::function<void(const std::filesystem::path& path, std::string_view name)>& take);

}  // namespace snug::data
